//! Looking into a text that is no message: whether it was meant as an answer, and for which request.

use rmcp::model::RequestId;
use serde_json::Value;

use super::frames::{Balance, begins_like_json};
use super::quote::contains;

/// The number of bytes of the value with which a text begins; `None` if it does not end.
pub(super) fn end_of_value(text: &[u8]) -> Option<usize> {
    let mut balance = Balance::default();
    let end = text.iter().position(|byte| {
        balance.weigh(*byte);
        balance.is_even()
    });
    end.map(|last| last + 1)
}

/// The id, if it is valid: a number or a text. `7.0` is 7.
pub(super) fn request_id(id: &Value) -> Option<RequestId> {
    match id {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15);
            // Exact, because it is whole and small enough.
            #[expect(clippy::cast_possible_truncation, reason = "bounded in the line above")]
            number.as_i64().or(whole.map(|number| number as i64)).map(RequestId::Number)
        }
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether an invalid text was meant as an answer, and not as a log line, request or notification.
pub(super) fn is_like_an_answer(text: &[u8]) -> bool {
    // A log line may begin with a bracket, as a list does.
    let begins = text.starts_with(b"{") || begins_like_json(text);
    begins && contains(text, b"\"jsonrpc\"") && member(text, "method").is_none()
}

/// The id of a message in an invalid text. An id at the very end may be incomplete and does not count.
pub(super) fn salvaged_id(text: &[u8]) -> Option<RequestId> {
    let value = member(text, "id")?;
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Value>();
    let id = values.next()?.ok()?;
    request_id(&id).filter(|_| values.byte_offset() < value.len())
}

/// The text after the colon of a member in an invalid text. Only members of the message itself count: content has ids
/// too, and so has what follows the message.
fn member<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let key = format!("\"{name}\"");
    let level = if text.starts_with(b"[") { 2 } else { 1 };
    let mut balance = Balance::default();
    for (place, byte) in text.iter().enumerate() {
        if balance.depth() == level
            && !balance.is_in_string()
            && let Some(rest) = text.get(place..)?.strip_prefix(key.as_bytes())
            && let Some(value) = rest.trim_ascii_start().strip_prefix(b":")
        {
            return Some(value);
        }
        balance.weigh(*byte);
        if balance.is_even() {
            return None;
        }
    }
    None
}
