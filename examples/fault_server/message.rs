//! Minimal JSON-RPC for a server that cannot use a library.

use serde_json::{Map, Value, json};

/// Method not found.
pub(crate) const UNKNOWN_METHOD: i64 = -32601;
/// Invalid parameters.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// A header contradicts the body.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The protocol version of the request is not supported.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// A kind of message.
pub(crate) enum Message<'a> {
    /// A message that expects a response.
    Request { id: &'a Value, method: &'a str, params: &'a Value },
    /// A message without a response.
    Notification { method: &'a str, params: &'a Value },
    /// A response.
    Response { id: &'a Value },
    /// Not a JSON-RPC message.
    Nonsense,
}

/// The kind of a message.
pub(crate) fn read(message: &Value) -> Message<'_> {
    let params = message.get("params").unwrap_or(&Value::Null);
    match (message.get("method").and_then(Value::as_str), message.get("id")) {
        (Some(method), Some(id)) => Message::Request { id, method, params },
        (Some(method), None) => Message::Notification { method, params },
        (None, id) if is_response(message) => Message::Response { id: id.unwrap_or(&Value::Null) },
        (None, _) => Message::Nonsense,
    }
}

/// Whether the message is a response.
pub(crate) fn is_response(message: &Value) -> bool {
    message.get("result").is_some() || message.get("error").is_some()
}

/// A response with a result.
pub(crate) fn response(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A response with an error.
pub(crate) fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// A request from the server.
pub(crate) fn request(id: &str, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A notification from the server.
pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The member of that name as text; empty if it is not text.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Adds members to an object. Existing members stay.
pub(crate) fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        let mut added: Map<String, Value> = more;
        added.retain(|name, _| !object.contains_key(name));
        object.extend(added);
    }
    object
}
