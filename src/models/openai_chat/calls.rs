//! Streamed tool calls. The specification has one index per call, and id and name in its first piece. Servers deviate:
//! no index, no id, one index for several calls, an id in every piece, an empty id later, arguments as an object.

use serde_json::Value;
use toolgate_core::chat::Part;
use toolgate_core::tool::Arguments;

use super::api_types::{CallPiece, FunctionPiece};
use crate::http::Fault;

/// The most calls of a reply; a reply with more is treated as broken.
const MAX_CALLS: usize = 1024;

/// The calls of one reply, in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct CallDrafts(Vec<CallDraft>);

/// A call that may be incomplete.
#[derive(Debug, Default)]
struct CallDraft {
    index: u64,
    id: String,
    name: String,
    arguments: String,
    extra_content: Option<Value>,
}

/// Whether the reply reached its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truncation {
    No,
    /// It hit a limit or was stopped, possibly inside the last call.
    Early,
}

impl CallDrafts {
    /// Adds a piece of a streamed call; `position` is its position within the chunk.
    pub(super) fn push_piece(&mut self, position: usize, piece: CallPiece) -> Result<(), Fault> {
        let named = piece.index;
        let index = named.unwrap_or(position as u64);
        let id = piece.id.unwrap_or_default();
        let FunctionPiece { name, arguments } = piece.function.unwrap_or_default();
        let (name, arguments) = (name.unwrap_or_default(), arguments_text(arguments));
        // Some servers repeat the name at an explicit index; that does not start another call.
        let is_fresh = !name.is_empty() && (named.is_none() || !arguments.trim().is_empty());
        let is_anonymous = id.is_empty() && name.is_empty();
        let growing = if is_anonymous { self.incomplete(index) } else { self.growing(named, index, &id, is_fresh) };
        let place = match growing {
            Some(place) => place,
            None if !is_anonymous => self.begin(CallDraft { index, ..CallDraft::default() })?,
            None if arguments.trim().is_empty() => return Ok(()),
            None => return Err(Fault::Unreadable("it has arguments that belong to no call".into())),
        };
        let Some(draft) = self.0.get_mut(place) else { return Ok(()) };
        if draft.id.is_empty() {
            draft.id = id;
        }
        if draft.name.is_empty() {
            draft.name = name;
        }
        draft.arguments.push_str(&arguments);
        draft.extra_content = piece.extra_content.or(draft.extra_content.take());
        Ok(())
    }

    /// Adds a complete call.
    pub(super) fn push_whole(&mut self, piece: CallPiece) -> Result<(), Fault> {
        let FunctionPiece { name, arguments } = piece.function.unwrap_or_default();
        self.begin(CallDraft {
            index: self.0.len() as u64,
            id: piece.id.unwrap_or_default(),
            name: name.unwrap_or_default(),
            arguments: arguments_text(arguments),
            extra_content: piece.extra_content,
        })?;
        Ok(())
    }

    /// Whether there are no calls.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The `extra_content` that the server expects back with each call.
    pub(super) fn extra_contents(&self) -> Vec<Option<Value>> {
        self.0.iter().map(|draft| draft.extra_content.clone()).collect()
    }

    /// The calls as parts of a reply. An id may still be empty.
    pub(super) fn into_parts(self, cut: Truncation) -> impl Iterator<Item = Part> {
        let last = self.0.len().saturating_sub(1);
        self.0.into_iter().enumerate().map(move |(position, draft)| {
            // Missing text means empty arguments, unless the reply was cut before them.
            let is_cut = cut == Truncation::Early && position == last && !is_whole_object(draft.arguments.trim());
            let CallDraft { id, name, arguments, .. } = draft;
            let input = if is_cut { Arguments::Malformed(arguments) } else { Arguments::parse(&arguments) };
            Part::ToolUse { id: id.into(), name, input }
        })
    }

    fn begin(&mut self, draft: CallDraft) -> Result<usize, Fault> {
        let place = self.0.len();
        if place >= MAX_CALLS {
            return Err(Fault::Unreadable(format!("it calls more than {MAX_CALLS} tools at once")));
        }
        self.0.push(draft);
        Ok(place)
    }

    /// The call that a piece without id and name continues: the latest one at its index, unless that one is complete
    /// and another one is not. Some servers move to the next index in the middle of a call (agno-agi/agno 8879).
    fn incomplete(&self, index: u64) -> Option<usize> {
        let at_index = self.0.iter().rposition(|draft| draft.index == index);
        // The common case: no arguments are parsed.
        if at_index.is_some_and(|place| place + 1 == self.0.len()) {
            return at_index;
        }
        let is_open = |place: &usize| self.0.get(*place).is_some_and(|draft| !is_whole_object(draft.arguments.trim()));
        let latest = || self.0.len().checked_sub(1).filter(is_open);
        at_index.filter(is_open).or_else(latest).or(at_index)
    }

    /// The call that a piece continues: the one with its id (unless the piece names another index, because some servers
    /// give all calls one id), or the latest one at its index that it does not replace.
    fn growing(&self, named: Option<u64>, index: u64, id: &str, is_fresh: bool) -> Option<usize> {
        let same_id =
            |draft: &CallDraft| !id.is_empty() && draft.id == id && named.is_none_or(|named| draft.index == named);
        let known = self.0.iter().position(same_id);
        let at_index = || {
            let latest = self.0.iter().rposition(|draft| draft.index == index)?;
            self.0.get(latest).is_some_and(|draft| !draft.is_replaced_by(id, is_fresh)).then_some(latest)
        };
        known.or_else(at_index)
    }
}

impl CallDraft {
    /// Whether the piece starts another call. A new id starts one even at a used index (Ollama). Among calls without
    /// ids, a piece that looks like a start is one if the arguments so far are complete. An empty id or name (vLLM)
    /// continues the call.
    fn is_replaced_by(&self, id: &str, is_fresh: bool) -> bool {
        if !self.id.is_empty() {
            return !id.is_empty();
        }
        is_fresh && !self.name.is_empty() && is_whole_object(&self.arguments)
    }
}

fn is_whole_object(text: &str) -> bool {
    // The first test avoids parsing arguments that are clearly incomplete.
    text.ends_with('}') && serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok()
}

fn arguments_text(arguments: Option<Value>) -> String {
    match arguments {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolgate_core::tool::ToolCall;

    /// The calls that result from these pieces, one chunk each, as id, name and arguments.
    fn calls(pieces: &[Value], cut: Truncation) -> Vec<(String, String, Value)> {
        let mut calls = CallDrafts::default();
        for piece in pieces {
            calls.push_piece(0, serde_json::from_value(piece.clone()).unwrap()).unwrap();
        }
        let read = |part: &Part| ToolCall::from_part(part).unwrap();
        let whole = |call: ToolCall| (call.id.to_string(), call.name, call.arguments.to_value());
        calls.into_parts(cut).map(|part| whole(read(&part))).collect()
    }

    fn call(id: &str, name: &str, arguments: Value) -> (String, String, Value) {
        (id.into(), name.into(), arguments)
    }

    #[test]
    fn a_late_id_belongs_to_the_call_without_one() {
        let pieces = [
            json!({"index": 0, "function": {"name": "look"}}),
            json!({"index": 0, "id": "a", "function": {"arguments": "{\"x\":1}"}}),
        ];
        assert_eq!(calls(&pieces, Truncation::No), [call("a", "look", json!({"x": 1}))]);
    }

    #[test]
    fn another_id_at_a_used_index_is_another_call() {
        let piece = |id: &str| json!({"index": 0, "id": id, "function": {"name": "ping", "arguments": ""}});
        assert_eq!(
            calls(&[piece("a"), piece("b")], Truncation::No),
            [call("a", "ping", json!({})), call("b", "ping", json!({}))]
        );
    }

    #[test]
    fn an_id_in_every_piece_is_one_call() {
        let piece = |text: &str| json!({"id": "a", "function": {"name": "look", "arguments": text}});
        assert_eq!(calls(&[piece("{\"x\""), piece(":1}")], Truncation::No), [call("a", "look", json!({"x": 1}))]);
    }

    #[test]
    fn whole_calls_without_ids_at_one_index_are_several() {
        let pieces = [
            json!({"function": {"name": "look", "arguments": "{}"}}),
            json!({"function": {"name": "look", "arguments": {"x": 1}}}),
        ];
        assert_eq!(calls(&pieces, Truncation::No), [call("", "look", json!({})), call("", "look", json!({"x": 1}))]);
    }

    #[test]
    fn a_name_repeated_during_the_arguments_is_not_a_new_call() {
        let piece = |text: &str| json!({"index": 0, "function": {"name": "look", "arguments": text}});
        assert_eq!(calls(&[piece("{\"x\""), piece(":1}")], Truncation::No), [call("", "look", json!({"x": 1}))]);
    }

    #[test]
    fn a_name_repeated_after_the_arguments_is_not_a_new_call() {
        let first = json!({"index": 0, "id": "a", "function": {"name": "pay", "arguments": "{\"x\":1}"}});
        for repeated in [
            json!({"index": 0, "function": {"name": "pay", "arguments": ""}}),
            json!({"index": 0, "id": "", "function": {"name": "pay"}}),
            json!({"function": {"name": "pay"}}),
        ] {
            assert_eq!(calls(&[first.clone(), repeated], Truncation::No), [call("a", "pay", json!({"x": 1}))]);
        }
        let first = json!({"index": 0, "function": {"name": "pay", "arguments": "{\"x\":1}"}});
        let late = json!({"index": 0, "id": "a", "function": {"name": "pay", "arguments": " "}});
        assert_eq!(calls(&[first, late], Truncation::No), [call("a", "pay", json!({"x": 1}))]);
    }

    #[test]
    fn a_piece_without_id_and_name_continues_the_incomplete_call() {
        let head = |index: u64, id: &str, text: &str| json!({"index": index, "id": id, "function": {"name": "look", "arguments": text}});
        let tail = |index: u64, text: &str| json!({"index": index, "function": {"arguments": text}});
        let both = [call("a", "look", json!({"x": 1})), call("b", "look", json!({"y": 2}))];
        for index in [0, 1, 2] {
            for first in [0, 1] {
                let pieces = [head(0, "a", "{\"x\":1}"), head(first, "b", "{\"y\""), tail(index, ":2}")];
                assert_eq!(calls(&pieces, Truncation::No), both, "the second call at {first}, its tail at {index}");
            }
        }
        let interleaved = [head(0, "a", "{\"x\""), head(1, "b", "{\"y\""), tail(0, ":1"), tail(1, ":2}"), tail(0, "}")];
        assert_eq!(calls(&interleaved, Truncation::No), both);
    }

    #[test]
    fn a_call_begins_only_with_an_id_or_a_name() {
        let mut drafts = CallDrafts::default();
        let piece = |text: &str| {
            let function = FunctionPiece { name: None, arguments: Some(text.into()) };
            CallPiece { index: Some(3), function: Some(function), ..CallPiece::default() }
        };
        drafts.push_piece(0, piece(" ")).unwrap();
        assert!(drafts.is_empty());
        assert!(matches!(drafts.push_piece(0, piece("{}")), Err(Fault::Unreadable(_))));
    }

    #[test]
    fn arguments_cut_before_their_start_are_not_empty() {
        for text in ["", " \n", "null"] {
            let pieces = [json!({"index": 0, "id": "a", "function": {"name": "wipe", "arguments": text}})];
            assert_eq!(calls(&pieces, Truncation::No), [call("a", "wipe", json!({}))]);
            assert_eq!(calls(&pieces, Truncation::Early), [call("a", "wipe", json!(text))]);
        }
    }

    #[test]
    fn a_reply_with_too_many_calls_is_rejected() {
        let mut calls = CallDrafts::default();
        let piece = |index| CallPiece { index: Some(index), id: Some(format!("c{index}")), ..CallPiece::default() };
        let pushed: Result<Vec<()>, _> = (0..2_000).map(|index| calls.push_piece(0, piece(index))).collect();
        assert!(matches!(pushed, Err(Fault::Unreadable(_))));
    }
}
