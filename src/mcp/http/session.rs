//! Detection of an unknown session that the server reports with HTTP 400 instead of 404.
//!
//! The examples of the TypeScript SDK and servers of the Python SDK 1.x do this. A rejected call is repeated in a new
//! session, so the message alone does not suffice: the rejection has to come from the transport in front of the tools.
//! The transport does not know the id of the request, and uses no id of its own.

use rmcp::model::RequestId;
use serde_json::Value;

/// Phrases for an unknown session, in lower case.
const WORDS: [&str; 10] = [
    "session id",
    "session not found",
    "session expired",
    "session terminated",
    "no valid session",
    "invalid session",
    "unknown session",
    "expired session",
    "session does not exist",
    "server not initialized",
];

/// Whether the body of an HTTP 400 states that the session of this request is unknown.
pub(super) fn is_lost(body: &[u8], request: Option<&RequestId>) -> bool {
    let body_text = String::from_utf8_lossy(body).to_lowercase();
    if !WORDS.iter().any(|words| body_text.contains(words)) {
        return false;
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(json) => !request.is_some_and(|request| names(&json, request)),
        Err(_) => true,
    }
}

/// Whether the rejection has the id of the request, so that the server read the request.
fn names(refusal: &Value, request: &RequestId) -> bool {
    match refusal.get("id") {
        Some(Value::Number(number)) => number.to_string() == request.to_string(),
        Some(Value::String(text)) => *text == request.to_string(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_by_the_transport_is_distinguished_from_one_by_a_tool() {
        for (body, lost) in [
            (
                r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
                true,
            ),
            (r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#, true),
            (
                r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
                true,
            ),
            ("Bad Request: No valid session ID provided", true),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"the checkout: session expired"}}"#, false),
            (r#"{"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"session not found"}}"#, false),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"`text` is missing"}}"#, false),
            ("Invalid Host header", false),
        ] {
            assert_eq!(is_lost(body.as_bytes(), Some(&RequestId::Number(7))), lost, "{body}");
        }
    }
}
