//! JSON-RPC, as little of it as a server needs that may not use a library.

use serde_json::{Map, Value, json};

/// Method not found.
pub(crate) const UNKNOWN_METHOD: i64 = -32601;
/// The parameters are none that can be used.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// A header does not say what the body says.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The revision of the request is not spoken here.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// What a message is.
pub(crate) enum Message<'a> {
    /// It wants an answer.
    Request { id: &'a Value, method: &'a str, params: &'a Value },
    /// It wants none.
    Notification { method: &'a str, params: &'a Value },
    /// It is one.
    Response { id: &'a Value },
    /// It is no JSON-RPC.
    Nonsense,
}

/// Says what a message is.
pub(crate) fn read(message: &Value) -> Message<'_> {
    let params = message.get("params").unwrap_or(&Value::Null);
    match (message.get("method").and_then(Value::as_str), message.get("id")) {
        (Some(method), Some(id)) => Message::Request { id, method, params },
        (Some(method), None) => Message::Notification { method, params },
        (None, id) if is_response(message) => Message::Response { id: id.unwrap_or(&Value::Null) },
        (None, _) => Message::Nonsense,
    }
}

/// Whether it answers something.
pub(crate) fn is_response(message: &Value) -> bool {
    message.get("result").is_some() || message.get("error").is_some()
}

/// An answer.
pub(crate) fn response(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A refusal.
pub(crate) fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// A request of the server's own.
pub(crate) fn request(id: &str, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Something said unasked.
pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The member of that name as text; empty if it is none.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Adds members to an object. What is there already is left alone.
pub(crate) fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        let mut added: Map<String, Value> = more;
        added.retain(|name, _| !object.contains_key(name));
        object.extend(added);
    }
    object
}
