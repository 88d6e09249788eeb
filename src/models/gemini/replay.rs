//! Turn replay: keeps a turn of this model and sends it back unchanged. A thought signature is valid only on its own
//! part, and the thoughts exist in no other form.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolgate_core::chat::{Message, Part, ProviderState};
use toolgate_core::id::CallId;
use toolgate_core::json::{MAX_DEPTH, is_deeper_than};

use super::names::accepted_name;

/// The name of this wire format.
pub const WIRE: &str = "gemini";

/// The field of the last item of a turn that is to be continued. Such an item is not a part and is never sent as one.
const TOKEN: &str = "continuationToken";

/// A call of a turn, as its result must name it.
pub(super) struct ReplayedCalls<'a> {
    /// Its id in the conversation.
    pub(super) id: &'a CallId,
    /// Its name in the API.
    pub(super) name: Cow<'a, str>,
    /// Its id in the API; Gemini often sends no id.
    pub(super) wire_id: Option<&'a str>,
}

/// The state to keep of a turn, with its continuation token if there is one.
pub(super) fn keep(model: &str, parts: Vec<Value>, token: Option<String>) -> Option<ProviderState> {
    let token = token.map(|token| json!({ (TOKEN): token }));
    let items: Vec<Value> = parts.into_iter().chain(token).collect();
    // Arguments nested this deep are malformed in the neutral form; a journal could not restore them here.
    let is_kept = !items.is_empty() && !items.iter().any(|item| is_deeper_than(item, MAX_DEPTH));
    is_kept.then(|| ProviderState { wire: WIRE.into(), model: model.to_owned(), origin: None, items })
}

/// The token that continues this turn: the same request is sent again with it, without the turn.
pub(super) fn continued_by<'a>(message: &'a Message, model: &str) -> Option<&'a str> {
    own(message, model)?.last()?.get(TOKEN)?.as_str()
}

/// The turn unchanged, if this model wrote it. A turn with only thoughts counts as empty.
pub(super) fn parts<'a>(message: &'a Message, model: &str) -> Option<Vec<Cow<'a, Value>>> {
    let mut calls = calls(&message.content);
    let written = own(message, model)?.iter().filter(|item| item.get(TOKEN).is_none());
    let parts: Vec<Cow<'a, Value>> = written
        .map(|part| match part.get("functionCall").and_then(|_| calls.next()) {
            Some((id, name)) => as_sendable(part, id, name),
            None => Cow::Borrowed(part),
        })
        .collect();
    parts.iter().any(|part| !is_bare_thought(part)).then_some(parts)
}

/// The calls of a turn. Only a call that came with an id is sent with one.
pub(super) fn replayed_calls<'a>(message: &'a Message, model: &str) -> Vec<ReplayedCalls<'a>> {
    let mut written = own(message, model).unwrap_or_default().iter().filter(|part| part.get("functionCall").is_some());
    let replayed = |(id, name): (&'a CallId, &'a str)| ReplayedCalls {
        id,
        name: accepted_name(name),
        wire_id: written.next().and_then(written_id).map(|_| id.as_str()),
    };
    calls(&message.content).map(replayed).collect()
}

fn own<'a>(message: &'a Message, model: &str) -> Option<&'a [Value]> {
    let state = message.provider_state.as_ref().filter(|state| state.wire == WIRE && state.model == model)?;
    Some(&state.items)
}

fn calls(content: &[Part]) -> impl Iterator<Item = (&CallId, &str)> {
    content.iter().filter_map(Part::tool_use).map(|(id, name, _)| (id, name))
}

/// The call unchanged, except for the conversation's id and an invalid name.
fn as_sendable<'a>(part: &'a Value, id: &CallId, name: &str) -> Cow<'a, Value> {
    let mut part = Cow::Borrowed(part);
    if written_id(&part).is_some_and(|written| written != id.as_str()) {
        set(part.to_mut(), "/functionCall/id", id.as_str());
    }
    if let Cow::Owned(accepted) = accepted_name(name) {
        set(part.to_mut(), "/functionCall/name", &accepted);
    }
    part
}

fn set(part: &mut Value, place: &str, text: &str) {
    if let Some(value) = part.pointer_mut(place) {
        *value = text.into();
    }
}

fn written_id(part: &Value) -> Option<&str> {
    part.pointer("/functionCall/id")?.as_str().filter(|id| !id.is_empty())
}

fn is_bare_thought(part: &Value) -> bool {
    part.get("thought") == Some(&Value::Bool(true)) && part.get("thoughtSignature").is_none()
}
