//! Redaction of a request's secrets from the answer. Endpoints that echo what they receive are common, among them the
//! servers that a wrong address reaches.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use toolgate_core::redact::{SecretsBuilder, Style};

use super::client::Headers;

/// The sensitive values of one request.
pub(super) struct Confidential {
    uri: Arc<str>,
    headers: Vec<(HeaderName, HeaderValue)>,
    token: Option<String>,
}

impl Confidential {
    /// The secrets of this address, among these headers, and the token.
    pub(super) fn of(uri: &Arc<str>, headers: &Headers, token: Option<&String>) -> Self {
        let headers = headers.iter().filter(|(_, value)| value.is_sensitive());
        let headers = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { uri: Arc::clone(uri), headers, token: token.cloned() }
    }

    /// The text without the secrets.
    pub(super) fn redacted(&self, text: &str) -> String {
        let mut secrets = SecretsBuilder::default();
        secrets.address(&self.uri);
        for (name, value) in &self.headers {
            secrets.named(name.as_str(), &String::from_utf8_lossy(value.as_bytes()));
        }
        self.token.iter().for_each(|token| secrets.credential(token));
        secrets.build(Style::MESSAGE).redacted(text).into_owned()
    }
}

#[cfg(test)]
mod tests {
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
        let uri = Arc::from("http://ann:hunter2222@h/mcp");
        let redacted = |text| Confidential::of(&uri, &headers, Some(&token)).redacted(text);
        assert_eq!(redacted("Basic YW5uOmh1bnRlcjIyMjI=, sk-very-***"), "Basic [redacted]=, [redacted]***");
        let body = "{\"got\":\"sk-very-secret\",\"or\":\"granted-token\",\"at\":\"north-branch\"}";
        let redacted = redacted(body);
        assert!(
            redacted.ends_with("{\"got\":\"[redacted]\",\"or\":\"[redacted]\",\"at\":\"north-branch\"}"),
            "{redacted}"
        );
    }
}
