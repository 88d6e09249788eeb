//! Answers that violate JSON-RPC, byte by byte. Clients parse some of them in different ways, and others not at all.

use serde_json::{Value, json};

use crate::faults::Moment;
use crate::message;

/// The placeholder of the flaw in an answer.
const MARK: &str = "@flaw@";
/// The depth of `deep-nesting`.
const DEPTH: usize = 5000;

/// A flaw of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Half of a surrogate pair, as the official SDKs send a truncated emoji.
    LoneSurrogate,
    /// Text in Latin-1.
    Latin1,
    /// The number `NaN`.
    Nan,
    /// The number `1e400`.
    LargeNumber,
    /// Thousands of lists inside each other.
    DeepNesting,
    /// Both `result` and `error`.
    ResultAndError,
    /// A byte order mark in front.
    ByteOrderMark,
    /// Indented over several lines.
    Indented,
    /// A batch with a notification.
    Batch,
    /// Behind it, on the same line, a notification.
    SecondMessage,
    /// The second half is missing.
    Truncated,
    /// The id as text.
    TextId,
    /// No `jsonrpc`.
    NoVersion,
    /// The id twice, a wrong one first.
    DuplicateKeys,
    /// No id.
    NoId,
    /// Nothing after the id.
    IdOnly,
    /// `error` is null, and there is no `result`.
    ErrorNull,
    /// In UTF-16.
    Utf16,
    /// Behind the beginning of a log line.
    BehindLogPrefix,
    /// Without the line feed that ends it.
    NoLineFeed,
    /// A `resultType` that no specification defines.
    UnknownResultType,
}

impl Flaw {
    /// The answer as bytes.
    pub(crate) fn spoil(self, moment: Moment, answer: &Value) -> Vec<u8> {
        let plain = || answer.to_string();
        match self {
            Self::LoneSurrogate => marked(moment, answer, Place::Text, b"\"cut \\ud83d\""),
            Self::Latin1 => marked(moment, answer, Place::Text, b"\"caf\xe9\""),
            Self::Nan => marked(moment, answer, Place::Number, b"NaN"),
            Self::LargeNumber => marked(moment, answer, Place::Number, b"1e400"),
            Self::DeepNesting => {
                let nested = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
                marked(moment, answer, Place::Number, nested.as_bytes())
            }
            Self::ResultAndError => {
                let error = json!({"error": {"code": -32000, "message": "and yet it failed"}});
                message::with(answer.clone(), error).to_string().into()
            }
            Self::ByteOrderMark => format!("\u{feff}{answer}").into(),
            Self::Indented => format!("{answer:#}").into(),
            Self::Batch => {
                let note = json!({"level": "info", "data": "one of a batch"});
                json!([message::notification("notifications/message", note), answer]).to_string().into()
            }
            Self::SecondMessage => {
                let note = json!({"level": "info", "data": "on the same line"});
                format!("{answer} {}", message::notification("notifications/message", note)).into()
            }
            Self::Truncated => {
                let text = plain();
                text.get(..text.len() / 2).unwrap_or_default().into()
            }
            Self::TextId => {
                let mut answer = answer.clone();
                let id = answer.get("id").map(Value::to_string);
                answer.as_object_mut().map(|answer| answer.insert("id".into(), id.into()));
                answer.to_string().into()
            }
            Self::NoVersion => without("jsonrpc", answer).to_string().into(),
            Self::DuplicateKeys => plain().replacen('{', "{\"id\":\"another\",", 1).into(),
            Self::NoId => without("id", answer).to_string().into(),
            Self::IdOnly => {
                let id = answer.get("id").map(Value::to_string).unwrap_or_default();
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},").into()
            }
            Self::ErrorNull => message::with(without("result", answer), json!({"error": null})).to_string().into(),
            Self::Utf16 => plain().encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::BehindLogPrefix => format!("[INFO] answered with {answer}").into(),
            Self::NoLineFeed => plain().into(),
            Self::UnknownResultType => plain().replacen("\"complete\"", "\"later\"", 1).into(),
        }
    }
}

fn without(name: &str, answer: &Value) -> Value {
    let mut answer = answer.clone();
    answer.as_object_mut().map(|answer| answer.remove(name));
    answer
}

/// The position of a flaw that is a value.
enum Place {
    Text,
    Number,
}

fn marked(moment: Moment, answer: &Value, place: Place, flaw: &[u8]) -> Vec<u8> {
    let mut answer = answer.clone();
    let result = answer.get_mut("result").and_then(Value::as_object_mut);
    if let Some(result) = result {
        match (moment, place) {
            (Moment::Start, Place::Text) => drop(result.insert("instructions".into(), MARK.into())),
            (Moment::Start, Place::Number) => {
                if let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut) {
                    capabilities.insert("experimental".into(), json!({"x": {"y": MARK}}));
                }
            }
            (Moment::List, place) => {
                let tools = result.get_mut("tools").and_then(Value::as_array_mut);
                let mutant = tools.into_iter().flatten().find(|tool| message::text(tool, "name") == "mutant");
                if let Some(tool) = mutant.and_then(Value::as_object_mut) {
                    match place {
                        Place::Text => drop(tool.insert("description".into(), MARK.into())),
                        Place::Number => drop(tool.insert("inputSchema".into(), json!({"default": MARK}))),
                    }
                }
            }
            (Moment::Call, Place::Text) => {
                result.insert("content".into(), json!([{"type": "text", "text": MARK}]));
            }
            (Moment::Call, Place::Number) => drop(result.insert("structuredContent".into(), json!({"value": MARK}))),
        }
    }
    let text = answer.to_string();
    let quoted = format!("\"{MARK}\"");
    match text.split_once(&quoted) {
        Some((before, after)) => [before.as_bytes(), flaw, after.as_bytes()].concat(),
        None => text.into(),
    }
}
