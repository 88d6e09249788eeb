//! Redaction of a request's secrets from the answer. Endpoints that echo what they receive are common, among them the
//! servers that a wrong address reaches.

use http::HeaderValue;
use secrecy::SecretString;

use super::client::Headers;
use crate::secrets::Secrets;

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
    pub(super) fn redacted(&self, text: &str) -> String {
        let headers = self.headers.iter().filter_map(|value| value.to_str().ok());
        // `Bearer abc` may be echoed as `abc`.
        let words = headers.flat_map(str::split_whitespace).chain(self.token.as_deref());
        let words: Vec<SecretString> = words.map(SecretString::from).collect();
        Secrets::among(&words).redacted(text)
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
        let redacted = Confidential::of(&headers, Some(&token)).redacted(body);
        assert!(
            redacted.ends_with("{\"got\":\"[redacted]\",\"or\":\"[redacted]\",\"at\":\"north-branch\"}"),
            "{redacted}"
        );
    }
}
