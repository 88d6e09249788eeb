//! Streamed content block. It stays JSON, as the API sends it, so that it can be replayed unchanged; the parts for the
//! conversation are read at the end.

use serde_json::{Map, Value};
use toolgate_core::chat::Part;
use toolgate_core::json::{MAX_DEPTH, is_deeper_than};
use toolgate_core::tool::Arguments;

/// Block types whose fields are known: a delta of an unknown type is not merged into them.
const KNOWN: [&str; 5] = ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"];

/// A block that may be incomplete.
#[derive(Debug)]
pub(super) struct PartialBlock {
    block: Map<String, Value>,
    /// Streamed arguments, which are valid JSON only when complete.
    arguments: String,
}

/// The text of a block so far, or the text that a delta adds to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlockText {
    /// Text of the answer.
    Text(String),
    Reasoning(String),
}

impl PartialBlock {
    /// A block with this start, or a complete block.
    pub(super) fn new(block: Map<String, Value>) -> Self {
        Self { block, arguments: String::new() }
    }

    /// Its text so far.
    pub(super) fn fragment(&self) -> Option<BlockText> {
        let text = |field: &str| Some(string(&self.block, field)).filter(|text| !text.is_empty());
        match self.kind() {
            "text" => text("text").map(|text| BlockText::Text(text.to_owned())),
            "thinking" => text("thinking").map(|text| BlockText::Reasoning(text.to_owned())),
            _ => None,
        }
    }

    /// Adds a delta.
    pub(super) fn grow(&mut self, mut delta: Map<String, Value>) -> Option<BlockText> {
        let text = |field: &str| Some(string(&delta, field).to_owned()).filter(|text| !text.is_empty());
        match string(&delta, "type") {
            "text_delta" => {
                let text = text("text")?;
                self.append("text", &text);
                return Some(BlockText::Text(text));
            }
            "thinking_delta" => {
                let text = text("thinking")?;
                self.append("thinking", &text);
                return Some(BlockText::Reasoning(text));
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

    /// Whether it calls one of our tools.
    pub(super) fn is_call(&self) -> bool {
        self.kind() == "tool_use"
    }

    /// Whether the arguments are missing or empty.
    pub(super) fn has_no_arguments(&self) -> bool {
        let begins_with = self.block.get("input").and_then(Value::as_object);
        self.arguments.trim().is_empty() && begins_with.is_none_or(Map::is_empty)
    }

    /// The part of the reply, and the block for the replay. `is_cut` means that the answer ended inside the block.
    pub(super) fn end(mut self, is_cut: bool) -> (Option<Part>, Value) {
        if !self.arguments.is_empty() {
            // Arguments that are not an object stay only in the neutral form.
            let input = serde_json::from_str::<Map<String, Value>>(&self.arguments).unwrap_or_default();
            self.block.insert("input".into(), Value::Object(input));
        }
        let part = match (self.kind(), self.fragment()) {
            ("tool_use", _) => Some(self.call(is_cut)),
            (_, Some(BlockText::Text(text))) => Some(Part::Text { text }),
            (_, Some(BlockText::Reasoning(text))) => Some(Part::Reasoning { text }),
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
            // Even if they look complete: a block also starts with an empty object.
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

    /// Merges an unknown delta into an unknown block: text is appended, other fields are replaced.
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

/// Whether a block can be stored in a journal.
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

    /// The block that results from these deltas.
    fn grown(begin: Value, pieces: &[Value]) -> (Option<Part>, Value) {
        let object = |value: &Value| value.as_object().unwrap().clone();
        let mut block = PartialBlock::new(object(&begin));
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
    fn an_unknown_delta_is_merged_only_into_an_unknown_block() {
        let piece = |text: &str| json!({"type": "future_delta", "content": text, "n": 1});
        let (_, block) = grown(json!({"type": "future", "content": null}), &[piece("a"), piece("b")]);
        assert_eq!(block, json!({"type": "future", "content": "ab", "n": 1}));
        let (_, block) = grown(json!({"type": "text", "text": "ok"}), &[piece("a")]);
        assert_eq!(block, json!({"type": "text", "text": "ok"}));
    }

    #[test]
    fn arguments_of_server_tools_are_kept_but_not_called() {
        let begin = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
        let (part, block) = grown(begin, &[json!({"type": "input_json_delta", "partial_json": "{\"q\":1}"})]);
        assert_eq!((part, &block["input"]), (None, &json!({"q": 1})));
    }

    #[test]
    fn non_object_arguments_are_in_the_call_not_in_the_block() {
        let begin = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
        let (part, block) = grown(begin, &[json!({"type": "input_json_delta", "partial_json": "[1"})]);
        assert!(matches!(part, Some(Part::ToolUse { input: Arguments::Malformed(text), .. }) if text == "[1"));
        assert_eq!(block["input"], json!({}));
    }

    #[test]
    fn arguments_nested_too_deep_are_not_kept_in_the_journal() {
        let deep = format!("{{\"x\":{}{}}}", "[".repeat(110), "]".repeat(110));
        let begin = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
        let (part, block) = grown(begin, &[json!({"type": "input_json_delta", "partial_json": deep})]);
        assert!(matches!(part, Some(Part::ToolUse { input: Arguments::Malformed(_), .. })));
        assert!(can_be_kept(&block));
    }
}
