//! Size and depth of values from a server, and short excerpts for messages. Such values are journaled, shown and
//! compared, so each has a limit where it is read.

use std::io;

use serde_json::Value;

/// The longest text of a server in a message, in characters.
const LONGEST: usize = 500;

/// The longest JSON of a server in a message, in characters.
const LONGEST_JSON: usize = 200;

/// The length as JSON, in bytes.
pub(super) fn size(value: &Value) -> usize {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// The nesting depth of lists and objects.
pub(super) fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// The beginning of a text of any length.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The beginning of the JSON, for a message.
pub(super) fn excerpt(value: &Value) -> String {
    let json = value.to_string();
    match json.char_indices().nth(LONGEST_JSON) {
        Some((end, _)) => format!("{}...", json.get(..end).unwrap_or_default()),
        None => json,
    }
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_as_long_as_its_json_and_as_deep_as_its_brackets() {
        for (value, deep) in [(json!("é"), 0), (json!([]), 1), (json!({"a": [1, {"b": null}], "c": {}}), 3)] {
            assert_eq!((size(&value), depth(&value)), (value.to_string().len(), deep), "{value}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        assert_eq!(shortened("é"), "é");
        assert_eq!(shortened(&"é".repeat(LONGEST + 1)), format!("{}...", "é".repeat(LONGEST)));
    }
}
