//! Redaction of a request's secrets from the answer. Endpoints that echo what they receive are common, among them the
//! servers that a wrong address reaches.

use std::sync::{Arc, OnceLock};

use http::{HeaderName, HeaderValue};
use rmcp::model::ErrorData;
use serde_json::Value;
use toolgate_core::redact::{Secrets, SecretsBuilder, Style};

use super::client::Headers;
use crate::fault::VISITS_REQUIRED;

/// More bytes than a message quotes of a body.
const QUOTED: usize = 4096;

/// The sensitive values of one request.
pub(super) struct Confidential {
    uri: Arc<str>,
    headers: Vec<(HeaderName, HeaderValue)>,
    token: Option<String>,
    /// Built when the first text is redacted: most responses need no redaction, and one may need it for each event.
    known: OnceLock<Secrets>,
}

impl Confidential {
    /// The secrets of this address, among these headers, and the token.
    pub(super) fn new(uri: &Arc<str>, headers: &Headers, token: Option<&String>) -> Self {
        let headers = headers.iter().filter(|(_, value)| value.is_sensitive());
        let headers = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { uri: Arc::clone(uri), headers, token: token.cloned(), known: OnceLock::new() }
    }

    /// The text without the secrets.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.known().redacted(text).into_owned()
    }

    /// The beginning of a text, as far as messages quote it, without the secrets.
    pub(super) fn beginning(&self, text: &str) -> String {
        let end = text.floor_char_boundary(QUOTED + self.known().longest());
        match text.get(..end).filter(|beginning| beginning.len() < text.len()) {
            Some(beginning) => self.known().redacted_so_far(beginning).into_owned(),
            None => self.redacted(text),
        }
    }

    /// The error without the secrets in its message and data. The addresses that a user has to visit stay as they are.
    pub(super) fn error(&self, error: ErrorData) -> ErrorData {
        let is_for_user = error.code.0 == VISITS_REQUIRED;
        let data = error.data.map(|data| if is_for_user { data } else { self.json(data) });
        ErrorData { message: self.redacted(&error.message).into(), data, ..error }
    }

    fn json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redacted(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (self.redacted(&name), self.json(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn known(&self) -> &Secrets {
        self.known.get_or_init(|| {
            let mut secrets = SecretsBuilder::default();
            secrets.address(&self.uri);
            for (name, value) in &self.headers {
                secrets.named(name.as_str(), &String::from_utf8_lossy(value.as_bytes()));
            }
            self.token.iter().for_each(|token| secrets.credential(token));
            secrets.build(Style::MESSAGE)
        })
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_secrets_of_a_request_are_collected_once() {
        let confidential = Confidential::new(&Arc::from("http://ann:hunter2222@h/mcp"), &Headers::new(), None);
        assert!(confidential.known.get().is_none(), "most responses need no redaction");
        let first = std::ptr::from_ref(confidential.known());
        confidential.redacted("hunter2222");
        assert_eq!(std::ptr::from_ref(confidential.known()), first);
    }

    #[test]
    fn an_error_is_passed_on_without_secrets_in_message_and_data() {
        let token = "granted-token".to_owned();
        let confidential = Confidential::new(&Arc::from("http://h/mcp?key=0123456789"), &Headers::new(), Some(&token));
        let data =
            json!({"got": ["Bearer granted-token", 7], "granted-token": null, "url": "https://h/?key=0123456789"});
        let error = |code| ErrorData::new(ErrorCode(code), "bad granted-token", Some(data.clone()));
        let redacted = confidential.error(error(-32000));
        assert_eq!(redacted.message, "bad [redacted]");
        let expected = json!({"got": ["Bearer [redacted]", 7], "[redacted]": null, "url": "https://h/?key=[redacted]"});
        assert_eq!(redacted.data, Some(expected));
        assert_eq!(confidential.error(error(VISITS_REQUIRED)).data, Some(data), "a user opens its addresses");
    }

    #[test]
    fn of_a_long_text_the_beginning_is_redacted() {
        let token = "granted-token".to_owned();
        let confidential = Confidential::new(&Arc::from("http://h/mcp"), &Headers::new(), Some(&token));
        assert_eq!(confidential.beginning("granted-token é"), "[redacted] é");
        for before in QUOTED - 2..QUOTED + 14 {
            let shown = confidential.beginning(&format!("{}granted-token{}", "x".repeat(before), "é".repeat(9000)));
            assert!(!shown.contains("gran") && shown.len() <= QUOTED + 23, "{before} bytes before it");
        }
    }

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
        let redacted = |text| Confidential::new(&uri, &headers, Some(&token)).redacted(text);
        assert_eq!(redacted("Basic YW5uOmh1bnRlcjIyMjI=, sk-very-***"), "Basic [redacted]=, [redacted]***");
        let body = "{\"got\":\"sk-very-secret\",\"or\":\"granted-token\",\"at\":\"north-branch\"}";
        let redacted = redacted(body);
        assert!(
            redacted.ends_with("{\"got\":\"[redacted]\",\"or\":\"[redacted]\",\"at\":\"north-branch\"}"),
            "{redacted}"
        );
    }
}
