//! A content block as its pieces arrive. It stays JSON, as the API writes it, so that it can be sent back as it was;
//! what the conversation needs of it is read at the end.

use serde_json::{Map, Value};

use crate::core::chat::Part;
use crate::core::json::{MAX_DEPTH, is_deeper_than};
use crate::core::tool::Arguments;

/// Kinds of block whose fields are known: a piece of an unknown kind does not belong in them.
const KNOWN: [&str; 5] = ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"];

/// A block that may still be growing.
#[derive(Debug)]
pub(super) struct Growing {
    block: Map<String, Value>,
    /// Streamed arguments, which are JSON only once they are whole.
    arguments: String,
}

/// A piece that people may watch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Of the answer.
    Text(String),
    /// Of the reasoning.
    Reasoning(String),
}

impl Growing {
    /// A block that begins like this, or is whole already.
    pub(super) fn new(block: Map<String, Value>) -> Self {
        Self { block, arguments: String::new() }
    }

    /// What it says so far.
    pub(super) fn said(&self) -> Option<Said> {
        let text = |field: &str| Some(string(&self.block, field)).filter(|text| !text.is_empty());
        match self.kind() {
            "text" => text("text").map(|text| Said::Text(text.to_owned())),
            "thinking" => text("thinking").map(|text| Said::Reasoning(text.to_owned())),
            _ => None,
        }
    }

    /// Takes a piece.
    pub(super) fn grow(&mut self, mut delta: Map<String, Value>) -> Option<Said> {
        let text = |field: &str| Some(string(&delta, field).to_owned()).filter(|text| !text.is_empty());
        match string(&delta, "type") {
            "text_delta" => {
                let text = text("text")?;
                self.append("text", &text);
                return Some(Said::Text(text));
            }
            "thinking_delta" => {
                let text = text("thinking")?;
                self.append("thinking", &text);
                return Some(Said::Reasoning(text));
            }
            "input_json_delta" => self.arguments.push_str(string(&delta, "partial_json")),
            "signature_delta" => {
                self.block.insert("signature".into(), string(&delta, "signature").into());
            }
            "citations_delta" => {
                let citation = delta.shift_remove("citation")?;
                match self.block.get_mut("citations").and_then(Value::as_array_mut) {
                    Some(citations) => citations.push(citation),
                    None => drop(self.block.insert("citations".into(), Value::Array(vec![citation]))),
                }
            }
            _ if KNOWN.contains(&self.kind()) => {}
            _ => self.merge(delta),
        }
        None
    }

    /// Whether it asks for a tool of ours.
    pub(super) fn is_call(&self) -> bool {
        self.kind() == "tool_use"
    }

    /// Whether no arguments have come, or none that say anything.
    pub(super) fn has_no_arguments(&self) -> bool {
        let begins_with = self.block.get("input").and_then(Value::as_object);
        self.arguments.trim().is_empty() && begins_with.is_none_or(Map::is_empty)
    }

    /// The part of the reply that it stands for, and the block for the replay. `is_cut` says that the answer ended
    /// inside of it.
    pub(super) fn end(mut self, is_cut: bool) -> (Option<Part>, Value) {
        if !self.arguments.is_empty() {
            // What is no object stays in the neutral form alone.
            let input = serde_json::from_str::<Map<String, Value>>(&self.arguments).unwrap_or_default();
            self.block.insert("input".into(), Value::Object(input));
        }
        let part = match (self.kind(), self.said()) {
            ("tool_use", _) => Some(self.call(is_cut)),
            (_, Some(Said::Text(text))) => Some(Part::Text { text }),
            (_, Some(Said::Reasoning(text))) => Some(Part::Reasoning { text }),
            (_, None) => None,
        };
        if let Some(Part::ToolUse { input: Arguments::Malformed(_), .. }) = part {
            self.block.insert("input".into(), Value::Object(Map::new()));
        }
        (part, Value::Object(self.block))
    }

    fn call(&self, is_cut: bool) -> Part {
        let input = self.block.get("input").cloned().unwrap_or_default();
        let input = match (is_cut, self.arguments.is_empty()) {
            (false, true) => Arguments::from_value(input),
            (false, false) => Arguments::parse(&self.arguments),
            // However whole they look: an empty object is also what a block begins with.
            (true, false) => Arguments::Malformed(self.arguments.clone()),
            (true, true) => Arguments::Malformed(input.to_string()),
        };
        Part::ToolUse { id: string(&self.block, "id").into(), name: string(&self.block, "name").to_owned(), input }
    }

    fn append(&mut self, field: &str, text: &str) {
        if let Some(Value::String(so_far)) = self.block.get_mut(field) {
            so_far.push_str(text);
        } else {
            self.block.insert(field.to_owned(), text.into());
        }
    }

    /// An unknown piece of an unknown block: text grows, anything else is as the piece has it.
    fn merge(&mut self, delta: Map<String, Value>) {
        for (field, value) in delta.into_iter().filter(|(field, _)| field != "type") {
            if let Value::String(text) = value {
                self.append(&field, &text);
            } else {
                self.block.insert(field, value);
            }
        }
    }

    fn kind(&self) -> &str {
        string(&self.block, "type")
    }
}

/// Whether a block can be kept in a journal.
pub(super) fn can_be_kept(block: &Value) -> bool {
    !is_deeper_than(block, MAX_DEPTH)
}

fn string<'a>(object: &'a Map<String, Value>, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The block that comes of these pieces.
    fn grown(begin: Value, pieces: &[Value]) -> (Option<Part>, Value) {
        let object = |value: &Value| value.as_object().unwrap().clone();
        let mut block = Growing::new(object(&begin));
        for piece in pieces {
            block.grow(object(piece));
        }
        block.end(false)
    }

    #[test]
    fn citations_are_kept_for_the_replay() {
        let piece = |n: u64| json!({"type": "citations_delta", "citation": {"n": n}});
        let text = json!({"type": "text_delta", "text": "ok"});
        let (part, block) = grown(json!({"type": "text", "text": ""}), &[piece(1), text, piece(2)]);
        assert_eq!(block, json!({"type": "text", "text": "ok", "citations": [{"n": 1}, {"n": 2}]}));
        assert_eq!(part, Some(Part::text("ok")));
    }

    #[test]
    fn a_piece_that_nobody_knows_belongs_only_in_a_block_that_nobody_knows() {
        let piece = |text: &str| json!({"type": "future_delta", "content": text, "n": 1});
        let (_, block) = grown(json!({"type": "future", "content": null}), &[piece("a"), piece("b")]);
        assert_eq!(block, json!({"type": "future", "content": "ab", "n": 1}));
        let (_, block) = grown(json!({"type": "text", "text": "ok"}), &[piece("a")]);
        assert_eq!(block, json!({"type": "text", "text": "ok"}));
    }

    #[test]
    fn the_arguments_of_a_tool_of_the_server_are_read_but_not_asked_for() {
        let begin = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
        let (part, block) = grown(begin, &[json!({"type": "input_json_delta", "partial_json": "{\"q\":1}"})]);
        assert_eq!((part, &block["input"]), (None, &json!({"q": 1})));
    }

    #[test]
    fn arguments_that_are_no_object_stand_in_the_call_and_not_in_the_block() {
        let begin = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
        let (part, block) = grown(begin, &[json!({"type": "input_json_delta", "partial_json": "[1"})]);
        assert!(matches!(part, Some(Part::ToolUse { input: Arguments::Malformed(text), .. }) if text == "[1"));
        assert_eq!(block["input"], json!({}));
    }

    #[test]
    fn arguments_that_are_nested_too_deep_for_a_journal_are_not_kept_in_it() {
        let deep = format!("{{\"x\":{}{}}}", "[".repeat(110), "]".repeat(110));
        let begin = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
        let (part, block) = grown(begin, &[json!({"type": "input_json_delta", "partial_json": deep})]);
        assert!(matches!(part, Some(Part::ToolUse { input: Arguments::Malformed(_), .. })));
        assert!(can_be_kept(&block));
    }
}
