//! Turn replay: sends a turn of this model back unchanged. The API checks the signatures of the reasoning, and other
//! blocks carry more than the neutral form. Only blocks that the API would reject are fixed.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::chat::{Message, Part, ProviderState, Role};
use toolgate_core::tool::{Arguments, ToolCall};

use super::content_block::{Block, is_blank};
use super::names::{accepted_id, accepted_input, accepted_name};

/// The name of this wire format.
pub const WIRE: &str = "anthropic";

/// The blocks of a turn; `None` if another model wrote it, or if its calls differ from those of the message.
pub(super) fn blocks<'a>(message: &'a Message, model: &str) -> Option<Vec<Block<'a>>> {
    let state = own_state(message, model)?;
    let mut calls = message.content.iter().filter_map(ToolCall::from_part);
    let mut blocks = Vec::with_capacity(state.items.len());
    for item in &state.items {
        let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "tool_use" => blocks.push(Block::Raw(tool_use(item, calls.next()?))),
            // The API itself sometimes writes blank text, and reasoning without a signature when it is cut.
            "text" if is_blank(text("text")) => {}
            "thinking" if !is_reasoning(item) => {}
            _ => blocks.push(Block::Raw(Cow::Borrowed(item))),
        }
    }
    calls.next().is_none().then_some(blocks)
}

/// Whether the request may ask for thinking with a budget. The API then requires that the open turn, with all its
/// calls, starts with reasoning that it signed. A turn that another model started must end without thinking.
pub(super) fn may_think(messages: &[Arc<Message>], model: &str) -> bool {
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    let is_prompt = |message: &Arc<Message>| message.role == Role::User && !message.content.iter().any(is_result);
    let begins = messages.iter().rposition(is_prompt).map_or(0, |prompt| prompt + 1);
    let under_way = messages.iter().skip(begins).filter(|message| message.role == Role::Assistant);
    let mut states = under_way.map(|message| own_state(message, model));
    match states.next() {
        None => true,
        Some(first) => {
            first.and_then(|state| state.items.first()).is_some_and(is_reasoning) && states.all(|state| state.is_some())
        }
    }
}

fn own_state<'a>(message: &'a Message, model: &str) -> Option<&'a ProviderState> {
    message.provider_state.as_ref().filter(|state| state.wire == WIRE && state.model == model)
}

/// Whether a block is reasoning that can be sent back.
fn is_reasoning(item: &Value) -> bool {
    let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
    text("type") == "redacted_thinking" || (text("type") == "thinking" && !text("signature").is_empty())
}

/// A call under its id in the conversation, with an object as arguments.
fn tool_use(item: &Value, call: ToolCall) -> Cow<'_, Value> {
    let (id, name) = (accepted_id(&call.id), accepted_name(&call.name));
    let says = |field: &str, text: &str| item.get(field).and_then(Value::as_str) == Some(text);
    let has_arguments =
        matches!(call.arguments, Arguments::Object(_)) && item.get("input").is_some_and(Value::is_object);
    if says("id", &id) && says("name", &name) && has_arguments {
        return Cow::Borrowed(item);
    }
    let mut block = item.as_object().cloned().unwrap_or_default();
    block.insert("id".into(), id.into());
    block.insert("name".into(), name.into());
    block.insert("input".into(), Value::Object(accepted_input(&call.arguments).into_owned()));
    Cow::Owned(Value::Object(block))
}
