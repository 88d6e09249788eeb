//! Replay state: provider fields that a server expects back with its own turn and that the neutral form lacks. They are
//! OpenRouter's `reasoning_details`, the `extra_content` of calls, in which Google's compatible API puts its signatures,
//! and whether the reasoning came as `reasoning_content`, which some servers demand and others reject. Other fields are
//! not kept: some servers reject fields that they sent themselves.

use serde_json::{Map, Value, json};
use toolgate_core::chat::{Message, ProviderState};

use super::WIRE;

/// The member of the state that says in which field the reasoning came. The text is in the message.
const REASONING_CONTENT: &str = "reasoning_content";

/// The replay state of a message.
#[derive(Debug, Default)]
pub(super) struct VendorFields<'a> {
    /// Of the whole turn.
    pub(super) reasoning_details: Vec<&'a Value>,
    /// Of each of its calls.
    pub(super) extra_contents: Vec<Option<&'a Value>>,
    /// Whether its reasoning came as `reasoning_content`.
    pub(super) has_reasoning_content: bool,
}

/// The replay state of a message, if this model wrote it.
pub(super) fn from_message<'a>(message: &'a Message, model: &str) -> VendorFields<'a> {
    let state = message.provider_state.as_ref().filter(|state| state.wire == WIRE && state.model == model);
    let mut vendor_fields = VendorFields::default();
    for turn in state.into_iter().flat_map(|state| &state.items) {
        let list = |name: &str| turn.get(name).and_then(Value::as_array).into_iter().flatten();
        vendor_fields.reasoning_details.extend(list("reasoning_details"));
        vendor_fields.extra_contents.extend(list("tool_calls").map(|call| call.get("extra_content")));
        vendor_fields.has_reasoning_content |= turn.get(REASONING_CONTENT) == Some(&Value::Bool(true));
    }
    vendor_fields
}

/// The state of a turn, if there is data to keep.
pub(super) fn state(
    model: &str,
    details: Vec<Value>,
    extra_contents: Vec<Option<Value>>,
    has_reasoning_content: bool,
) -> Option<ProviderState> {
    let mut turn = Map::new();
    if has_reasoning_content {
        turn.insert(REASONING_CONTENT.into(), true.into());
    }
    if !details.is_empty() {
        turn.insert("reasoning_details".into(), details.into());
    }
    let is_signed = extra_contents.iter().any(Option::is_some);
    if turn.is_empty() && !is_signed {
        return None;
    }
    let calls = extra_contents
        .into_iter()
        .map(|extra| extra.map_or_else(|| json!({}), |extra| json!({"extra_content": extra})));
    turn.insert("tool_calls".into(), calls.collect());
    Some(ProviderState { wire: WIRE.into(), model: model.to_owned(), origin: None, items: vec![turn.into()] })
}

/// Adds the next list of `reasoning_details`. In a stream, text and summaries come in pieces with one index, which are
/// joined again; entries of one list stay separate.
pub(super) fn add_details(details: &mut Vec<Value>, pieces: Option<Value>) {
    let Some(Value::Array(pieces)) = pieces else { return };
    let mut pieces = pieces.into_iter();
    match (details.last_mut(), pieces.next()) {
        (Some(Value::Object(last)), Some(Value::Object(piece))) if continues(last, &piece) => grow(last, piece),
        (_, first) => details.extend(first),
    }
    details.extend(pieces);
}

fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let is_text = matches!(piece.get("type").and_then(Value::as_str), Some("reasoning.text" | "reasoning.summary"));
    is_text && last.get("type") == piece.get("type") && last.get("index") == piece.get("index")
}

fn grow(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (last.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) if name == "text" || name == "summary" => {
                text.push_str(&more);
            }
            (Some(Value::Null) | None, value) => {
                last.insert(name, value);
            }
            (Some(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_list_is_kept_unchanged() {
        let list = json!([{"type": "reasoning.text", "text": "a"}, {"type": "reasoning.text", "text": "b"}]);
        let mut details = Vec::new();
        add_details(&mut details, Some(list.clone()));
        assert_eq!(Value::from(details), list);
    }

    #[test]
    fn pieces_with_one_index_are_joined() {
        let mut details = Vec::new();
        let text =
            |text: &str, index: u64| json!({"type": "reasoning.text", "text": text, "signature": null, "index": index});
        for pieces in [
            json!([text("Look ", 0)]),
            json!([text("it up.", 0)]),
            json!([{"type": "reasoning.text", "signature": "c2ln", "index": 0}]),
            json!([text("Then", 1), {"type": "reasoning.encrypted", "data": "a", "index": 1}]),
            json!([{"type": "reasoning.encrypted", "data": "b", "index": 1}]),
            json!("not a list"),
        ] {
            add_details(&mut details, Some(pieces));
        }
        let expected = json!([
            {"type": "reasoning.text", "text": "Look it up.", "signature": "c2ln", "index": 0},
            {"type": "reasoning.text", "text": "Then", "signature": null, "index": 1},
            {"type": "reasoning.encrypted", "data": "a", "index": 1},
            {"type": "reasoning.encrypted", "data": "b", "index": 1},
        ]);
        assert_eq!(Value::from(details), expected);
    }
}
