//! Authorization response: the parameters of the redirect from an authorization server.

use reqwest::Url;
use secrecy::SecretString;

/// The answer to an authorization request.
#[derive(Debug)]
pub(super) enum Callback {
    /// Access was granted; the code can be exchanged for tokens.
    Granted {
        code: SecretString,
        /// The issuer of the response, if it names itself (RFC 9207).
        issuer: Option<String>,
    },
    /// Access was denied, for that reason.
    Denied(String),
}

/// Why an address is not an answer to our request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidCallback {
    /// Its state is not ours: it answers another request.
    State,
    /// It has neither a code nor an error, or a repeated parameter.
    Empty,
}

impl Callback {
    /// Reads the address, if it answers the request with that state. A repeated parameter makes it invalid.
    pub(super) fn read(address: &str, state: &str) -> Result<Self, InvalidCallback> {
        let url = Url::parse(address).map_err(|_| InvalidCallback::Empty)?;
        let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        let is_doubled = |name: &&str| url.query_pairs().filter(|(key, _)| key == name).count() > 1;
        if is_doubled(&"state") || value("state").is_none_or(|received| received != state) {
            return Err(InvalidCallback::State);
        }
        if ["code", "error", "error_description", "iss"].iter().any(is_doubled) {
            return Err(InvalidCallback::Empty);
        }
        if let Some(error) = value("error") {
            let why = value("error_description").map(|why| format!("{error}: {why}")).unwrap_or(error);
            return Ok(Self::Denied(why));
        }
        let code = value("code").ok_or(InvalidCallback::Empty)?;
        Ok(Self::Granted { code: code.into(), issuer: value("iss") })
    }
}

/// The `state` parameter of an authorization page.
pub(super) fn state_of(page: &str) -> Option<String> {
    let url = Url::parse(page).ok()?;
    url.query_pairs().find(|(key, _)| key == "state").map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    const BACK: &str = "http://127.0.0.1:1/callback";

    fn read(query: &str) -> Result<Callback, InvalidCallback> {
        Callback::read(&format!("{BACK}?{query}"), "s1")
    }

    #[test]
    fn a_code_with_our_state_is_a_grant() {
        let Ok(Callback::Granted { code, issuer }) = read("code=c%2F1&state=s1&iss=https%3A%2F%2Fas.test") else {
            panic!("not granted")
        };
        assert_eq!((code.expose_secret(), issuer.as_deref()), ("c/1", Some("https://as.test")));
    }

    #[test]
    fn another_state_or_none_or_two_is_no_answer() {
        for query in ["code=c&state=s2", "code=c", "code=c&state=s1&state=s1", "error=access_denied&state=s2"] {
            assert_eq!(read(query).expect_err(query), InvalidCallback::State);
        }
        for query in [
            "state=s1",
            "code=a&code=b&state=s1",
            "code=c&state=s1&iss=https%3A%2F%2Fas.test&iss=https%3A%2F%2Fother.test",
            "code=c&state=s1&error=access_denied&error=access_denied",
            "error=access_denied&error_description=a&error_description=b&state=s1",
        ] {
            assert_eq!(read(query).expect_err(query), InvalidCallback::Empty);
        }
    }

    #[test]
    fn an_error_with_our_state_is_a_denial() {
        let Ok(Callback::Denied(why)) = read("error=access_denied&error_description=not%20you&state=s1") else {
            panic!("not denied")
        };
        assert_eq!(why, "access_denied: not you");
    }

    #[test]
    fn the_state_of_a_page_is_what_it_asks_with() {
        assert_eq!(state_of("https://as.test/authorize?client_id=a&state=x%20y").as_deref(), Some("x y"));
        assert_eq!(state_of("https://as.test/authorize"), None);
    }
}
