//! Redaction of a request's secrets from the answer. Endpoints that echo what they receive are common, among them the
//! servers that a wrong address reaches.

use http::HeaderValue;

use super::client::Headers;

/// Shorter values do not count as secrets, and are shown.
const SHORTEST: usize = 8;

/// The sensitive values of one request.
pub(super) struct Confidential {
    headers: Vec<HeaderValue>,
    token: Option<String>,
}

impl Confidential {
    /// The secrets among these headers, and the token.
    pub(super) fn of(headers: &Headers, token: Option<&String>) -> Self {
        let headers = headers.values().filter(|value| value.is_sensitive()).cloned().collect();
        Self { headers, token: token.cloned() }
    }

    /// The text without the secrets.
    pub(super) fn redacted(&self, text: String) -> String {
        let headers = self.headers.iter().filter_map(|value| value.to_str().ok());
        // `Bearer abc` may be echoed as `abc`.
        let words = headers.flat_map(str::split_whitespace).chain(self.token.as_deref());
        let secrets = words.filter(|word| word.len() >= SHORTEST);
        secrets.fold(text, |text, secret| text.replace(secret, "[redacted]"))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn an_endpoint_that_repeats_what_it_received_is_quoted_without_the_credentials() {
        let mut key = HeaderValue::from_static("Bearer sk-very-secret");
        key.set_sensitive(true);
        let headers = Headers::from([
            (HeaderName::from_static("authorization"), key),
            (HeaderName::from_static("x-shop"), HeaderValue::from_static("north-branch")),
        ]);
        let token = "granted-token".to_owned();
        let body = "{\"got\":\"sk-very-secret\",\"or\":\"granted-token\",\"at\":\"north-branch\"}";
        let redacted = Confidential::of(&headers, Some(&token)).redacted(body.into());
        assert!(
            redacted.ends_with("{\"got\":\"[redacted]\",\"or\":\"[redacted]\",\"at\":\"north-branch\"}"),
            "{redacted}"
        );
    }
}
