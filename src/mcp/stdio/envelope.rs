//! What makes a line a message. Whatever the SDK cannot read it answers with an error of its own, which a server that
//! logs to stdout may log again, without end; so only what it can read may pass. An answer is an answer even so: an error
//! that is none to the letter, without a message or as a mere text, is put into its proper form, else the call it answers
//! would wait for it in vain.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What stands in for a code that is none.
const INTERNAL_ERROR: i32 = -32603;

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A message as it is.
    Message,
    /// A message that had to be put into its proper form.
    Mended(String),
    /// No message.
    Noise,
}

/// Says what a whole line is.
pub(super) fn read(line: &[u8]) -> Line {
    let text = std::str::from_utf8(line).ok().filter(|_| begins_like_one(line));
    match text.and_then(|text| serde_json::from_str::<Envelope<'_>>(text).ok()) {
        Some(Envelope { version: "2.0", method: Some(_), .. } | Envelope { version: "2.0", result: Some(_), .. }) => {
            Line::Message
        }
        Some(Envelope { version: "2.0", id, error: Some(error), .. }) => with_error(id, error),
        Some(_) | None => Line::Noise,
    }
}

/// Whether a line may be a message, of which only the beginning is known.
pub(super) fn begins_like_one(line: &[u8]) -> bool {
    line.starts_with(b"{")
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "jsonrpc")]
    version: &'a str,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "present")]
    result: Option<IgnoredAny>,
    error: Option<&'a RawValue>,
}

fn with_error(id: Option<&RawValue>, error: &RawValue) -> Line {
    #[derive(Deserialize)]
    struct WellFormed {
        #[serde(rename = "code")]
        _code: i32,
        #[serde(rename = "message")]
        _message: String,
    }
    if serde_json::from_str::<WellFormed>(error.get()).is_ok() {
        return Line::Message;
    }
    let given: Value = serde_json::from_str(error.get()).unwrap_or_default();
    let (code, message) = loosely(&given);
    let error = json!({"code": code, "message": message});
    let id = id.map(|id| format!("\"id\":{},", id.get())).unwrap_or_default();
    Line::Mended(format!("{{\"jsonrpc\":\"2.0\",{id}\"error\":{error}}}\n"))
}

/// The code and the message of an error that is none to the letter.
pub(in crate::mcp) fn loosely(error: &Value) -> (i32, String) {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = match error.as_str().or_else(|| error.get("message")?.as_str()) {
        Some(message) => message.to_owned(),
        None => format!("no message, only {error}"),
    };
    (code.unwrap_or(INTERNAL_ERROR), message)
}

/// Whether the member is there, be it as `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IgnoredAny>, D::Error> {
    IgnoredAny::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_read_as_a_message_is_one() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"id":"a","result":{},"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":[1]}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#,
        ] {
            assert_eq!(read(message.as_bytes()), Line::Message, "{message}");
        }
        for noise in [
            "ready",
            "[]",
            "{",
            "{}",
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":2.0,"id":1,"result":{}}"#,
            r#"{"level":"info","method":"GET"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}"#,
        ] {
            assert_eq!(read(noise.as_bytes()), Line::Noise, "{noise}");
        }
    }

    #[test]
    fn an_error_that_is_none_to_the_letter_still_answers_its_call() {
        for (error, code, message) in [
            (r#"{"code":-32000}"#, -32000, r#"no message, only {"code":-32000}"#),
            (r#"{"message":"the till is closed"}"#, INTERNAL_ERROR, "the till is closed"),
            (r#"{"code":"E_TILL","message":"closed"}"#, INTERNAL_ERROR, "closed"),
            (r#""boom""#, INTERNAL_ERROR, "boom"),
            ("[1]", INTERNAL_ERROR, "no message, only [1]"),
        ] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":"é 7","error":{error}}}"#);
            let Line::Mended(mended) = read(line.as_bytes()) else { panic!("{line} is not mended") };
            let expected = json!({"jsonrpc": "2.0", "id": "é 7", "error": {"code": code, "message": message}});
            assert_eq!(serde_json::from_str::<Value>(&mended).expect("JSON"), expected);
            assert_eq!(read(mended.trim_end().as_bytes()), Line::Message);
        }
    }
}
