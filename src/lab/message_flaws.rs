//! Flaws of messages: answers that violate JSON-RPC, byte by byte. Clients parse some of them in different ways, and others
//! not at all. The fault proxy and the fault server (`examples/fault_server`) send them.

use serde_json::{Map, Value, json};

/// The placeholder of the flaw in an answer.
const MARK: &str = "@flaw@";
/// The depth of `deep-nesting`.
const DEPTH: usize = 5000;

/// A flaw of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
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
    /// The number of the id in quotes, so that it is another id.
    TextId,
    /// No `jsonrpc`.
    NoVersion,
    /// The id twice, a wrong one first.
    DuplicateKeys,
    /// Without the id, so that it answers no request.
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
    /// Every flaw.
    pub const ALL: &[Self] = &[
        Self::LoneSurrogate,
        Self::Latin1,
        Self::Nan,
        Self::LargeNumber,
        Self::DeepNesting,
        Self::ResultAndError,
        Self::ByteOrderMark,
        Self::Indented,
        Self::Batch,
        Self::SecondMessage,
        Self::Truncated,
        Self::TextId,
        Self::NoVersion,
        Self::DuplicateKeys,
        Self::NoId,
        Self::IdOnly,
        Self::ErrorNull,
        Self::UnknownResultType,
        Self::Utf16,
        Self::BehindLogPrefix,
        Self::NoLineFeed,
    ];

    /// The name of the fault that has this flaw.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LoneSurrogate => "lone-surrogate",
            Self::Latin1 => "latin-1",
            Self::Nan => "nan",
            Self::LargeNumber => "large-number",
            Self::DeepNesting => "deep-nesting",
            Self::ResultAndError => "result-and-error",
            Self::ByteOrderMark => "byte-order-mark",
            Self::Indented => "indented",
            Self::Batch => "batch",
            Self::SecondMessage => "second-message",
            Self::Truncated => "truncated",
            Self::TextId => "text-id",
            Self::NoVersion => "no-jsonrpc",
            Self::DuplicateKeys => "duplicate-keys",
            Self::NoId => "no-id",
            Self::IdOnly => "id-only",
            Self::ErrorNull => "error-null",
            Self::UnknownResultType => "unknown-result-type",
            Self::Utf16 => "utf-16",
            Self::BehindLogPrefix => "behind-log-prefix",
            Self::NoLineFeed => "no-line-feed",
        }
    }

    /// What is wrong with the answer, as a sentence without its end.
    pub const fn effect(self) -> &'static str {
        match self {
            Self::LoneSurrogate => "a text ends with half of an emoji, as `\\ud83d`",
            Self::Latin1 => "a text is in Latin-1",
            Self::Nan => "a value is NaN",
            Self::LargeNumber => "a value is 1e400",
            Self::DeepNesting => "a value is 5000 lists inside each other",
            Self::ResultAndError => "the answer has a result and an error",
            Self::ByteOrderMark => "a byte order mark stands before the answer",
            Self::Indented => "the answer is indented, over several lines",
            Self::Batch => "the answer is in a batch, behind a notification",
            Self::SecondMessage => "a notification stands behind the answer, on the same line",
            Self::Truncated => "the second half of the answer is missing",
            Self::TextId => "the id of the answer is a text of the same number",
            Self::NoVersion => "the answer has no `jsonrpc`",
            Self::DuplicateKeys => "the answer has its id twice, a wrong one first",
            Self::NoId => "the answer has no id",
            Self::IdOnly => "the answer breaks off behind its id",
            Self::ErrorNull => "the answer has the error null and no result",
            Self::UnknownResultType => "the answer has the resultType `later`",
            Self::Utf16 => "the answer is in UTF-16",
            Self::BehindLogPrefix => "the answer stands behind the beginning of a log line",
            Self::NoLineFeed => "no line feed follows the answer",
        }
    }

    /// Whether no reader of JSON gets the result. Some clients read the answers with the other flaws.
    pub fn loses_answer(self) -> bool {
        match self {
            Self::SecondMessage
            | Self::Truncated
            | Self::NoId
            | Self::IdOnly
            | Self::ErrorNull
            | Self::Utf16
            | Self::BehindLogPrefix
            | Self::NoLineFeed => true,
            Self::LoneSurrogate
            | Self::Latin1
            | Self::Nan
            | Self::LargeNumber
            | Self::DeepNesting
            | Self::ResultAndError
            | Self::ByteOrderMark
            | Self::Indented
            | Self::Batch
            | Self::TextId
            | Self::NoVersion
            | Self::DuplicateKeys
            | Self::UnknownResultType => false,
        }
    }

    /// The answer with this flaw, as bytes without a line feed. A flaw of a value replaces a value of the result, which
    /// its form selects: the instructions of a handshake, a definition of a list, or the content of a call. An answer
    /// without such a value stays as it is.
    pub fn spoil(self, answer: &Value) -> Vec<u8> {
        let plain = || answer.to_string();
        match self {
            Self::LoneSurrogate => marked(answer, MemberType::Text, b"\"cut \\ud83d\""),
            Self::Latin1 => marked(answer, MemberType::Text, b"\"caf\xe9\""),
            Self::Nan => marked(answer, MemberType::Number, b"NaN"),
            Self::LargeNumber => marked(answer, MemberType::Number, b"1e400"),
            Self::DeepNesting => {
                let nested = "[".repeat(DEPTH) + &"]".repeat(DEPTH);
                marked(answer, MemberType::Number, nested.as_bytes())
            }
            Self::ResultAndError => {
                let error = json!({"code": -32000, "message": "and yet it failed"});
                with(with(answer.clone(), "result", json!({})), "error", error).to_string().into()
            }
            Self::ByteOrderMark => format!("\u{feff}{answer}").into(),
            Self::Indented => format!("{answer:#}").into(),
            Self::Batch => json!([log_message("one of a batch"), answer]).to_string().into(),
            Self::SecondMessage => format!("{answer} {}", log_message("on the same line")).into(),
            Self::Truncated => {
                let mut bytes = plain().into_bytes();
                bytes.truncate(bytes.len() / 2);
                bytes
            }
            Self::TextId => {
                let mut answer = answer.clone();
                if let Some(id) = answer.get_mut("id").filter(|id| id.is_number()) {
                    *id = id.to_string().into();
                }
                answer.to_string().into()
            }
            Self::NoVersion => without("jsonrpc", answer).to_string().into(),
            Self::DuplicateKeys => plain().replacen('{', "{\"id\":\"another\",", 1).into(),
            Self::NoId => without("id", answer).to_string().into(),
            Self::IdOnly => {
                let id = answer.get("id").map(Value::to_string).unwrap_or_default();
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},").into()
            }
            Self::ErrorNull => {
                let neither = without("error", &without("result", answer));
                with(neither, "error", Value::Null).to_string().into()
            }
            Self::Utf16 => plain().encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::BehindLogPrefix => format!("[INFO] answered with {answer}").into(),
            Self::NoLineFeed => plain().into(),
            Self::UnknownResultType => {
                let mut answer = answer.clone();
                let result = answer.get_mut("result").and_then(Value::as_object_mut);
                result.map(|result| result.insert("resultType".into(), "later".into()));
                answer.to_string().into()
            }
        }
    }
}

fn log_message(text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}})
}

/// The answer with a member that it does not have yet.
fn with(mut answer: Value, name: &str, value: Value) -> Value {
    answer.as_object_mut().map(|answer| answer.entry(name).or_insert(value));
    answer
}

fn without(name: &str, answer: &Value) -> Value {
    let mut answer = answer.clone();
    answer.as_object_mut().map(|answer| answer.shift_remove(name));
    answer
}

/// The type of the member whose value a flaw replaces.
#[derive(Clone, Copy)]
enum MemberType {
    Text,
    Number,
}

fn marked(answer: &Value, kind: MemberType, flaw: &[u8]) -> Vec<u8> {
    let mut answer = answer.clone();
    if let Some(result) = answer.get_mut("result").and_then(Value::as_object_mut) {
        mark(result, kind);
    }
    let text = answer.to_string();
    let quoted = format!("\"{MARK}\"");
    match text.split_once(&quoted) {
        Some((before, after)) => [before.as_bytes(), flaw, after.as_bytes()].concat(),
        None => text.into(),
    }
}

/// Puts the placeholder into a result.
fn mark(result: &mut Map<String, Value>, kind: MemberType) {
    if let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut) {
        match kind {
            MemberType::Number => drop(capabilities.insert("experimental".into(), json!({"x": {"y": MARK}}))),
            MemberType::Text => drop(result.insert("instructions".into(), MARK.into())),
        }
    } else if let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) {
        // The fault server has a tool for this purpose, whose definition no scenario uses otherwise.
        let is_mutant = |tool: &Value| tool.get("name").and_then(Value::as_str) == Some("mutant");
        let at = tools.iter().position(is_mutant).unwrap_or_default();
        if let Some(tool) = tools.get_mut(at).and_then(Value::as_object_mut) {
            match kind {
                MemberType::Text => drop(tool.insert("description".into(), MARK.into())),
                MemberType::Number => drop(tool.insert("inputSchema".into(), json!({"default": MARK}))),
            }
        }
    } else {
        match kind {
            MemberType::Text => drop(result.insert("content".into(), json!([{"type": "text", "text": MARK}]))),
            MemberType::Number => drop(result.insert("structuredContent".into(), json!({"value": MARK}))),
        }
    }
}
