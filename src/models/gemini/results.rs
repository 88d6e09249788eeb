//! Results of the calls of a turn. The API requires exactly one response for each call.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolgate_core::chat::Part;
use toolgate_core::json::is_deeper_than;

use super::media::Media;
use super::part::{FunctionOutput, Response, WirePart};
use super::replay::ReplayedCalls;

const NO_RESULT: &str = "There is no result of this call.";

/// The deepest object sent as an object; a deeper one becomes text. Protobuf readers stop somewhere below 100 levels,
/// and each level of JSON takes several of them.
const MAX_OBJECT_DEPTH: usize = 25;

/// The largest exact number: the API reads numbers as doubles, and larger ones would lose digits.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The responses to these calls, in order, and the media of the results that must follow all of them.
pub(super) fn answer<'a>(
    calls: &[ReplayedCalls<'a>],
    said: &'a [Part],
    media: &Media,
    is_gemini_3: bool,
) -> (Vec<WirePart<'a>>, Vec<WirePart<'a>>) {
    let mut attached = Vec::new();
    let responses = calls
        .iter()
        .map(|call| {
            let (response, parts) = match result_of(call, said) {
                Some((content, is_error)) => {
                    let mut shown = Vec::new();
                    let said = read(content, media, is_gemini_3, &mut shown, &mut attached);
                    (if is_error { Response::Error(said) } else { Response::Output(said) }, shown)
                }
                None => (Response::Error(FunctionOutput::Text(Cow::Borrowed(NO_RESULT))), Vec::new()),
            };
            WirePart::FunctionResponse { id: call.wire_id, name: call.name.clone(), response, parts }
        })
        .collect();
    (responses, attached)
}

fn result_of<'a>(call: &ReplayedCalls<'_>, said: &'a [Part]) -> Option<(&'a [Part], bool)> {
    let mut results = said.iter().filter_map(Part::tool_result);
    results.find(|(id, ..)| *id == call.id).map(|(_, content, is_error)| (content, is_error))
}

/// The text of a result. Its media goes to `shown`, within the response, or to `attached`, after all
/// responses.
fn read<'a>(
    content: &'a [Part],
    media: &Media,
    is_gemini_3: bool,
    shown: &mut Vec<WirePart<'a>>,
    attached: &mut Vec<WirePart<'a>>,
) -> FunctionOutput<'a> {
    let mut texts = Vec::new();
    for part in content {
        if let Some(within) = media.within_response(part).filter(|_| is_gemini_3) {
            shown.push(within);
            continue;
        }
        texts.push(match media.part(part) {
            Ok(behind) => {
                attached.push(behind);
                Cow::Borrowed("[attached below]")
            }
            Err(text) => text,
        });
    }
    match (texts.pop(), texts.is_empty()) {
        (None, _) => FunctionOutput::Text(Cow::Borrowed("")),
        (Some(only), true) => object(&only).map_or(FunctionOutput::Text(only), FunctionOutput::Object),
        (Some(last), false) => {
            texts.push(last);
            FunctionOutput::Text(Cow::Owned(texts.join("\n")))
        }
    }
}

/// Text that is a JSON object, as an object, if that loses no data.
fn object(text: &str) -> Option<Map<String, Value>> {
    let text = text.trim();
    let object: Value = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()?;
    if is_deeper_than(&object, MAX_OBJECT_DEPTH) || !is_exact(&object) {
        return None;
    }
    match object {
        Value::Object(object) => Some(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}

fn is_exact(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() <= MAX_EXACT),
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
    }
}
