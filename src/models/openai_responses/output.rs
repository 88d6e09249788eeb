//! Output items: the parts of a reply, and the state that is sent back.

use serde_json::Value;
use toolgate_core::chat::{Part, ProviderState};
use toolgate_core::tool::Arguments;

/// The name of this wire format.
pub const WIRE: &str = "openai_responses";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseEnd {
    Own,
    /// It was cut off.
    Early,
}

/// The content of the items of a response.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Text, reasoning and calls, in order.
    pub(super) content: Vec<Part>,
    /// Whether the model refused.
    pub(super) is_refusal: bool,
}

impl Output {
    /// Reads the items; items of unknown types have no content.
    pub(super) fn new(items: &[Value], end: ResponseEnd) -> Self {
        let is_refused = items.iter().any(|item| kind(item) == "message" && refusals(item).next().is_some());
        let is_stopped = end == ResponseEnd::Early || is_refused;
        let last_call = items.iter().rposition(|item| kind(item) == "function_call");
        let mut output = Self { is_refusal: is_refused, ..Self::default() };
        for (index, item) in items.iter().enumerate() {
            let is_last = index + 1 == items.len();
            match kind(item) {
                "message" => output.message(item),
                "reasoning" => output.content.extend(reasoning(item)),
                "function_call" => {
                    // Some servers report an incomplete item only on the response.
                    let is_in_doubt = has_no_arguments(item) || (is_last && item.get("status").is_none());
                    let is_cut = is_cut(item) || (is_stopped && Some(index) == last_call && is_in_doubt);
                    output.content.push(call(item, is_cut));
                }
                _ => {}
            }
        }
        output
    }

    /// Whether the model calls tools.
    pub(super) fn has_calls(&self) -> bool {
        self.content.iter().any(|part| matches!(part, Part::ToolUse { .. }))
    }

    fn message(&mut self, item: &Value) {
        for part in list(item, "content") {
            let refusal = part.get("refusal").and_then(Value::as_str);
            let text = refusal.or_else(|| part.get("text")?.as_str()).unwrap_or_default();
            if !text.is_empty() {
                self.content.push(Part::text(text));
            }
        }
    }
}

/// The replay state of a turn, if every item is complete and its reasoning is in a form that a stateless server can
/// read. Otherwise the neutral form is sent, without ids that the server would not find.
pub(super) fn state(model: &str, items: Vec<Value>) -> Option<ProviderState> {
    let is_readable = |item: &Value| {
        kind(item) != "reasoning"
            || item.get("encrypted_content").is_some_and(Value::is_string)
            || list(item, "content").next().is_some()
    };
    let is_replayable = !items.is_empty() && items.iter().all(|item| is_readable(item) && !is_cut(item));
    is_replayable.then(|| ProviderState { wire: WIRE.into(), model: model.to_owned(), origin: None, items })
}

/// The type of an item.
pub(super) fn kind(item: &Value) -> &str {
    item.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn is_cut(item: &Value) -> bool {
    matches!(item.get("status").and_then(Value::as_str), Some("incomplete" | "in_progress"))
}

/// Whether a call has empty arguments.
fn has_no_arguments(item: &Value) -> bool {
    match item.get("arguments") {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => matches!(text.trim(), "" | "null"),
        Some(Value::Object(arguments)) => arguments.is_empty(),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => false,
    }
}

fn refusals(message: &Value) -> impl Iterator<Item = &str> {
    list(message, "content").filter_map(|part| part.get("refusal")?.as_str())
}

fn list<'a>(item: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    item.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The summary of the reasoning, or the reasoning itself from servers that return it.
fn reasoning(item: &Value) -> Option<Part> {
    let texts = |name: &str| {
        let texts: Vec<&str> = list(item, name).filter_map(|part| part.get("text")?.as_str()).collect();
        Some(texts.join("\n\n")).filter(|text| !text.is_empty())
    };
    texts("summary").or_else(|| texts("content")).map(|text| Part::Reasoning { text })
}

fn call(item: &Value, is_cut: bool) -> Part {
    let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let input = match item.get("arguments") {
        Some(arguments) if is_cut => Arguments::Malformed(arguments.as_str().unwrap_or_default().to_owned()),
        Some(arguments) => Arguments::from_value(arguments.clone()),
        None if is_cut => Arguments::Malformed(String::new()),
        None => Arguments::parse(""),
    };
    let id = text("call_id").or_else(|| text("id")).unwrap_or_default();
    Part::ToolUse { id: id.into(), name: text("name").unwrap_or_default().to_owned(), input }
}
