//! Tolerant JSON-RPC message parser.
//!
//! Most bytes are a message as the SDK reads it, and that parser runs first. The rest is parsed here: batches and
//! messages behind each other are split, a `null` beside a result or an error is dropped, an error without a message
//! gets one, and an answer to a request in flight needs no `jsonrpc`.

use rmcp::model::{CustomResult, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::frames::{begins_like_json, trimmed};
use super::json::{self, JsonFlaw};
use super::misplaced::{self, misplaced};
use super::quote::{quoted, quoted_at, shortened};
use super::salvage::{end_of_value, is_like_an_answer, request_id, salvaged_id};
use crate::fault::NO_CODE;

/// How many messages a text may have, behind each other or in a batch. A short message takes far more memory than its bytes.
const MAX_MESSAGES: usize = 1000;

/// The result of parsing.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A message, with its parts that are not JSON values and were read as `null`.
    Message(Box<ServerJsonRpcMessage>, Vec<JsonFlaw>),
    /// An ambiguous answer.
    Unreadable {
        /// The request that it names, if it names one.
        id: Option<RequestId>,
        /// The reason, for a sentence "it answered with something that cannot be read: ...".
        why: String,
    },
    /// An answer in a place where the protocol has none: behind other text on a line, or on a line without an end.
    Misplaced {
        /// The request that it names, which is in flight.
        id: RequestId,
        /// The reason, as above.
        why: String,
    },
    /// Not a message of the protocol.
    Noise,
}

/// Parses a text into no message, one, or several: a batch, or messages behind each other. An id for which
/// `is_in_flight` holds identifies an answer.
pub(crate) fn read(bytes: &[u8], is_in_flight: impl Fn(&RequestId) -> bool) -> Vec<Incoming> {
    let whole = trimmed(bytes);
    // Only what the SDK would reject is read a second time, tolerantly (decision 0018).
    if let Some(message) = conforming(whole) {
        return vec![message];
    }
    let mut incoming = Vec::new();
    let mut rest = whole;
    while !rest.is_empty() {
        if incoming.len() >= MAX_MESSAGES {
            incoming.push(Incoming::Unreadable { id: None, why: too_many_messages(rest) });
            break;
        }
        let (text, behind) = split_behind_value(rest);
        let message = if text.len() < whole.len() { conforming(text) } else { None };
        match message {
            Some(message) => incoming.push(message),
            None => incoming.extend(read_tolerantly(text, &is_in_flight)),
        }
        rest = behind;
    }
    incoming
}

fn too_many_messages(text: &[u8]) -> String {
    format!("it has more than {MAX_MESSAGES} messages on one line: {}", quoted(text))
}

/// The message as the SDK reads it.
fn conforming(text: &[u8]) -> Option<Incoming> {
    let message = call_result(text).or_else(|| serde_json::from_slice(text).ok())?;
    Some(Incoming::Message(Box::new(message), Vec::new()))
}

/// The answer to a tool call, untyped. The SDK tries its result types one after the other on a copy, and the gateway
/// turns the typed result into JSON again.
fn call_result(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Answer<'a> {
        #[serde(borrow)]
        jsonrpc: &'a str,
        id: RequestId,
        result: Map<String, Value>,
    }
    let Answer { jsonrpc, id, result } = serde_json::from_slice(text).ok()?;
    let is_call_result = jsonrpc == "2.0" && result.contains_key("content");
    let untyped = || ServerResult::CustomResult(CustomResult::new(Value::Object(result)));
    is_call_result.then(|| JsonRpcMessage::response(untyped(), id))
}

/// The first value of a text, and the values behind it. The whole text if it does not consist of values.
fn split_behind_value(text: &[u8]) -> (&[u8], &[u8]) {
    let end = end_of_value(text).filter(|_| begins_like_json(text));
    let (value, behind) = end.and_then(|end| text.split_at_checked(end)).unwrap_or((text, &[]));
    let behind = behind.trim_ascii_start();
    if begins_like_json(behind) { (value, behind) } else { (text, &[]) }
}

fn read_tolerantly(text: &[u8], is_in_flight: &dyn Fn(&RequestId) -> bool) -> Vec<Incoming> {
    let (value, flaws) = match json::read(text) {
        Ok(read) => read,
        Err(broken) if is_like_an_answer(text) => {
            let shown = quoted_at(text, broken.place);
            let why = format!("it is no JSON ({} at byte {}): {shown}", broken.why, broken.place);
            return vec![Incoming::Unreadable { id: salvaged_id(text), why }];
        }
        Err(_) => return vec![unconventional(text, is_in_flight)],
    };
    let known = ParseContext { text, is_in_flight };
    match value {
        Value::Object(message) => vec![known.message(message, flaws)],
        Value::Array(batch) if batch.len() > MAX_MESSAGES => {
            vec![Incoming::Unreadable { id: None, why: too_many_messages(text) }]
        }
        Value::Array(batch) if !batch.is_empty() && batch.iter().all(Value::is_object) => {
            let messages = batch.into_iter().enumerate().map(|(position, message)| {
                let position = position.to_string();
                let own = flaws.iter().filter_map(|flaw| flaw.within(&position)).collect();
                if let Value::Object(message) = message { known.message(message, own) } else { Incoming::Noise }
            });
            messages.collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => vec![Incoming::Noise],
    }
}

/// The code and the message of an error that does not conform to JSON-RPC.
fn loosely(error: &Value) -> (i32, String) {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = match error.as_str().or_else(|| error.get("message")?.as_str()) {
        Some(message) => message.to_owned(),
        None => format!("no message, only {}", shortened(error.to_string().as_bytes())),
    };
    (code.unwrap_or(NO_CODE), message)
}

/// The context of parsing.
struct ParseContext<'a> {
    text: &'a [u8],
    is_in_flight: &'a dyn Fn(&RequestId) -> bool,
}

impl ParseContext<'_> {
    fn message(&self, mut message: Map<String, Value>, flaws: Vec<JsonFlaw>) -> Incoming {
        let has_version = message.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
        if message.contains_key("method") {
            // The receiver judges a request or notification with `null` in place of a number.
            return read_request(message).filter(|_| has_version).unwrap_or(Incoming::Noise);
        }
        let id = message.get("id").and_then(request_id);
        if !has_version && !id.as_ref().is_some_and(self.is_in_flight) {
            return Incoming::Noise;
        }
        message.insert("jsonrpc".into(), "2.0".into());
        match (message.get("result"), message.get("error")) {
            (None, None | Some(Value::Null)) => match id.filter(|id| has_version && (self.is_in_flight)(id)) {
                Some(id) => Incoming::Unreadable {
                    id: Some(id),
                    why: format!("it has neither a `result` nor an `error`: {}", self.quoted()),
                },
                None => Incoming::Noise,
            },
            (Some(_), None | Some(Value::Null)) => {
                message.remove("error");
                let Some(id) = id else {
                    return Incoming::Unreadable {
                        id,
                        why: format!("it has no id that can be one: {}", self.quoted()),
                    };
                };
                message.insert("id".into(), json!(id));
                let why = || format!("it is no result: {}", self.quoted());
                typed(message, flaws).unwrap_or_else(|| Incoming::Unreadable { id: Some(id), why: why() })
            }
            (None | Some(Value::Null), Some(error)) => {
                let error = proper(error);
                let id = id.map_or(Value::Null, |id| json!(id));
                let whole = json!({"jsonrpc": "2.0", "id": id, "error": error});
                serde_json::from_value(whole).map_or(Incoming::Noise, |error| Incoming::Message(error, Vec::new()))
            }
            (Some(_), Some(error)) => {
                let (code, words) = loosely(error);
                let words = shortened(words.as_bytes());
                let why = format!("it has both a `result` and an `error` ({words}, {code}): {}", self.quoted());
                Incoming::Unreadable { id, why }
            }
        }
    }

    fn quoted(&self) -> String {
        quoted(self.text)
    }
}

/// A request or a notification. Parameters that the SDK cannot read are dropped from a request, so that it gets a
/// reply.
fn read_request(mut message: Map<String, Value>) -> Option<Incoming> {
    let is_request = message.get("id").is_some_and(|id| request_id(id).is_some());
    typed(message.clone(), Vec::new()).or_else(|| {
        message.remove("params").filter(|_| is_request)?;
        typed(message, Vec::new())
    })
}

fn typed(message: Map<String, Value>, flaws: Vec<JsonFlaw>) -> Option<Incoming> {
    let message = serde_json::from_value(Value::Object(message)).ok()?;
    let within = flaws.iter().filter_map(|flaw| flaw.within("result")).collect();
    Some(Incoming::Message(message, within))
}

/// A conforming error with a code and a message.
fn proper(error: &Value) -> Value {
    let (code, message) = loosely(error);
    let mut proper = json!({"code": code, "message": message});
    if let (Some(data), Some(proper)) = (error.get("data"), proper.as_object_mut()) {
        proper.insert("data".into(), data.clone());
    }
    proper
}

/// A text that is neither JSON nor begins like it.
fn unconventional(text: &[u8], is_in_flight: &dyn Fn(&RequestId) -> bool) -> Incoming {
    if let Some((id, why)) = misplaced::in_utf16(text) {
        return Incoming::Unreadable { id, why };
    }
    match misplaced(text, is_in_flight) {
        Some(id) => {
            let why = format!(
                "it stands behind other text on its line, which belongs on stderr; a message has a line of its own: {}",
                quoted(text)
            );
            Incoming::Misplaced { id, why }
        }
        None => Incoming::Noise,
    }
}

/// The answers in flight on a line that has no end yet. The protocol ends each message with a line feed.
pub(super) fn unended(text: &[u8], is_in_flight: impl Fn(&RequestId) -> bool) -> Vec<Incoming> {
    let answered = read(text, &is_in_flight).into_iter().filter_map(|incoming| match incoming {
        Incoming::Message(message, _) => match *message {
            JsonRpcMessage::Response(response) => Some(response.id),
            JsonRpcMessage::Error(error) => error.id,
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        },
        Incoming::Misplaced { .. } | Incoming::Unreadable { .. } | Incoming::Noise => None,
    });
    let why = format!("the line feed after it is missing, which ends a message: {}", quoted(text));
    let answered = answered.filter(|id| is_in_flight(id));
    answered.map(|id| Incoming::Misplaced { id, why: why.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of parsing a text while the requests 1 and 7 are in flight: messages in their conforming form, and
    /// the kinds of the others.
    fn conforming(text: &str) -> Vec<String> {
        conforming_bytes(text.as_bytes())
    }

    fn conforming_bytes(text: &[u8]) -> Vec<String> {
        let in_flight = |id: &RequestId| [RequestId::Number(1), RequestId::Number(7)].contains(id);
        let conforming = |incoming| match incoming {
            Incoming::Message(message, flaws) => {
                let flaws: String = flaws.iter().map(|flaw| format!(" {flaw}")).collect();
                format!("{}{flaws}", serde_json::to_string(&message).expect("JSON"))
            }
            Incoming::Unreadable { id, why } => format!("unreadable {id:?}: {why}"),
            Incoming::Misplaced { id, why } => format!("misplaced {id:?}: {why}"),
            Incoming::Noise => "noise".into(),
        };
        read(text, in_flight).into_iter().map(conforming).collect()
    }

    #[test]
    fn an_answer_in_the_wrong_place_or_encoding_is_recognized() {
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        let [behind] = &conforming(&format!("[INFO] {{a}} sent {answer} in 3 ms"))[..] else { panic!("one") };
        assert!(behind.starts_with("misplaced Number(7): it stands behind other text on its line"), "{behind}");
        assert_eq!(conforming(&format!("[INFO] sent {}", answer.replace('7', "8"))), ["noise"], "not in flight");
        let little: Vec<u8> = answer.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = format!("\u{feff}{answer}").encode_utf16().flat_map(u16::to_be_bytes).collect();
        for text in [little, big] {
            let [read] = &conforming_bytes(&text)[..] else { panic!("one") };
            assert!(read.starts_with("unreadable Some(Number(7)): it is in UTF-16"), "{read}");
        }
        let in_flight = |id: &RequestId| *id == RequestId::Number(7);
        for (text, expected) in [(answer.to_owned(), 1), (answer.replace('7', "8"), 0), (answer[..20].to_owned(), 0)] {
            assert_eq!(unended(text.as_bytes(), in_flight).len(), expected, "{text}");
        }
    }

    #[test]
    fn a_conforming_message_passes_unchanged() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":[1]}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#,
        ] {
            let [conforming] = &conforming(message)[..] else { panic!("{message}") };
            let value = |text: &str| serde_json::from_str::<Value>(text).expect(text);
            assert_eq!(value(conforming), value(message));
        }
    }

    #[test]
    fn a_request_with_parameters_that_cannot_be_read_is_one_without() {
        let plain = r#"{"jsonrpc":"2.0","id":1,"method":"x/y"}"#;
        for params in ["[1,2]", "\"x\"", "7"] {
            let conforming = conforming(&plain.replace('}', &format!(",\"params\":{params}}}")));
            let value = |text: &str| serde_json::from_str::<Value>(text).expect(text);
            let expected = json!({"jsonrpc": "2.0", "id": 1, "method": "x/y", "params": null});
            assert_eq!(conforming.iter().map(|text| value(text)).collect::<Vec<_>>(), [expected], "{params}");
        }
        assert_eq!(conforming(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}"#), ["noise"]);
    }

    #[test]
    fn a_text_that_is_not_a_message_is_noise() {
        for noise in [
            "ready",
            "[]",
            "[1]",
            "42",
            "{",
            "{}",
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":9}"#,
            r#"{"id":1,"error":null}"#,
            r#"{"level":"info","id":1,"msg":"handling"}"#,
            r#"{"jsonrpc":"2.0","method":"notif"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":2.0,"id":5,"result":{}}"#,
            r#"{"level":"info","method":"GET"}"#,
            r#"{"level":"info","id":5,"result":"ok"}"#,
            r#"{"level":"info","result":"#,
        ] {
            assert_eq!(conforming(noise), ["noise"], "{noise}");
        }
        assert_eq!(conforming(" \r\n"), [""; 0]);
    }

    #[test]
    fn an_unambiguous_answer_is_put_into_conforming_form() {
        let answer = |text: &str| conforming(text).join(" ");
        let empty = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(answer(r#"{"id":1,"result":{}}"#), empty, "a request in flight is answered without `jsonrpc`");
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#), empty);
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#), empty);
        assert_eq!(answer(r#"{"id":"x","jsonrpc":"2.0","id":1,"result":{}}"#), empty);
        assert_eq!(answer(&format!("[{empty},{empty}]")), format!("{empty} {empty}"));
        let error = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{NO_CODE},"message":"boom"}}}}"#);
        assert_eq!(answer(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":"boom"}"#), error);
        let flawed = conforming(r#"[{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}]"#);
        assert_eq!(flawed, [r#"{"jsonrpc":"2.0","id":1,"result":{"a":null}} `/a` is `NaN`, which is no JSON value"#]);
    }

    #[test]
    fn messages_behind_each_other_are_split() {
        let [answer, note] = [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        ];
        let log = r#"{"level":"info"}"#;
        assert_eq!(conforming(&format!("{answer}{note}")), [answer, note]);
        assert_eq!(conforming(&format!("{log} {answer}\t[{note},{answer}]")), ["noise", answer, note, answer]);
        let cut = conforming(&format!(r#"{answer}{{"jsonrpc":"2.0","id":7,"result":{{"a":"}}"#));
        assert!(cut.len() == 2 && cut[0] == answer && cut[1].starts_with("unreadable Some(Number(7))"), "{cut:?}");
        let many = conforming(&log.repeat(MAX_MESSAGES + 2));
        assert_eq!((many.len(), many[MAX_MESSAGES].contains("more than 1000 messages")), (MAX_MESSAGES + 1, true));
        let trailing = conforming(&format!("{answer} sent x{note}"));
        assert!(trailing.len() == 1 && trailing[0].contains("more follows behind the value"), "{trailing:?}");
    }

    #[test]
    fn a_nonconforming_error_is_an_error() {
        for (error, code, message) in [
            (r#"{"code":-32000}"#, -32000, r#"no message, only {"code":-32000}"#),
            (r#"{"message":"the till is closed"}"#, NO_CODE, "the till is closed"),
            (r#"{"code":"E_TILL","message":"closed"}"#, NO_CODE, "closed"),
            (r#""boom""#, NO_CODE, "boom"),
            ("[1]", NO_CODE, "no message, only [1]"),
        ] {
            let conforming = conforming(&format!(r#"{{"jsonrpc":"2.0","id":"é 7","error":{error}}}"#));
            let expected = json!({"jsonrpc": "2.0", "id": "é 7", "error": {"code": code, "message": message}});
            assert_eq!(serde_json::from_str::<Value>(&conforming[0]).expect("JSON"), expected);
        }
    }

    #[test]
    fn an_ambiguous_answer_is_reported_with_its_id_and_its_bytes() {
        for (text, id, why) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"no"}}"#,
                "Some(Number(7))",
                "both a `result`",
            ),
            (r#"{"jsonrpc":"2.0","result":{}}"#, "None", "no id that can be one"),
            (r#"{"jsonrpc":"2.0","id":[7],"result":{}}"#, "None", "no id that can be one"),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"id":9"#, "Some(Number(7))", "it ends in the middle at byte 40"),
            (r#"{"jsonrpc":"2.0","result":{"id":9"#, "None", "it ends in the middle"),
            (
                r#"{"result":{"id":9,"text":'x'},"id":"7","jsonrpc":"2.0"}"#,
                r#"Some(String("7"))"#,
                "a value is expected",
            ),
            (r#"[{"jsonrpc":"2.0","id":7,"result":"#, "Some(Number(7))", "it ends in the middle"),
            (r#"{"jsonrpc":"2.0","id":7,"#, "Some(Number(7))", "it ends in the middle"),
            (r#"{"jsonrpc":"2.0","id":7"#, "None", "it ends in the middle"),
            (r#"{"jsonrpc":"2.0","result":{"method":"x"#, "None", "it ends in the middle"),
            (r#"{"jsonrpc":"2.0","id":7}"#, "Some(Number(7))", "neither a `result` nor an `error`"),
            (r#"{"jsonrpc":"2.0","id":7,"error":null}"#, "Some(Number(7))", "neither a `result` nor an `error`"),
        ] {
            let conforming = conforming(text).join(" ");
            assert!(
                conforming.starts_with(&format!("unreadable {id}: ")) && conforming.contains(why),
                "{text}: {conforming}"
            );
        }
        let long = conforming(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{}},"error":"{}"}}"#, "x".repeat(5000)));
        assert!(long[0].len() < 600, "{} bytes", long[0].len());
        let latin = conforming_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":'\xe9'}}").join(" ");
        assert!(latin.contains(r"'\xe9'"), "{latin}");
    }
}
