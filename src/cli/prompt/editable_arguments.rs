//! Arguments as text for an editor: JSON, or YAML with the lines of a text as lines, where a value has several.

use serde_json::Value;

use crate::cli::answers::{NOT_AN_OBJECT, edited_arguments};
use crate::config;
use crate::core::tool::Arguments;

const STEP: &str = "  ";

/// The arguments as text. [`parsed`] returns the same arguments from it.
pub(super) fn text_of(arguments: &Value) -> String {
    let json = format!("{arguments:#}\n");
    if !has_lines(arguments) {
        return json;
    }
    let mut yaml = String::new();
    write(arguments, "", &mut yaml);
    let yaml = yaml.trim_start_matches('\n').to_owned();
    match parsed(&yaml) {
        Ok(read) if read.to_value() == *arguments => yaml,
        Ok(_) | Err(_) => json,
    }
}

/// Reads the arguments that an editor saved.
pub(super) fn parsed(text: &str) -> Result<Arguments, String> {
    match edited_arguments(text) {
        // Text in braces was meant as JSON.
        Err(error) if text.trim_start().starts_with('{') => Err(error),
        Err(_) => match config::read_data("arguments", text) {
            Ok(Value::Object(members)) => Ok(Arguments::Object(members)),
            Ok(_) => Err(NOT_AN_OBJECT.to_owned()),
            Err(error) => Err(error.plain()),
        },
        read @ Ok(_) => read,
    }
}

/// Whether a text of several lines is in the value.
fn has_lines(value: &Value) -> bool {
    match value {
        Value::String(text) => is_block(text),
        Value::Array(items) => items.iter().any(has_lines),
        Value::Object(members) => members.values().any(has_lines),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a text has several lines, and only characters that a YAML block has.
fn is_block(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n') && !text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t'))
}

fn write(value: &Value, margin: &str, yaml: &mut String) {
    let inner = format!("{margin}{STEP}");
    match value {
        Value::Object(members) if has_lines(value) => {
            for (name, value) in members {
                yaml.push_str(&format!("\n{margin}{}:", Value::from(name.as_str())));
                write(value, &inner, yaml);
            }
        }
        Value::Array(items) if has_lines(value) => {
            for item in items {
                yaml.push_str(&format!("\n{margin}-"));
                write(item, &inner, yaml);
            }
        }
        Value::String(text) if is_block(text) => {
            let (lines, kept) = match text.strip_suffix('\n') {
                None => (text.as_str(), "-"),
                Some(lines) if lines.ends_with('\n') => (lines, "+"),
                Some(lines) => (lines, ""),
            };
            yaml.push_str(&format!(" |{}{kept}", STEP.len()));
            for line in lines.split('\n') {
                let margin = if line.is_empty() { "" } else { margin };
                yaml.push_str(&format!("\n{margin}{line}"));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            yaml.push_str(&format!(" {value}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_of_several_lines_is_edited_as_lines() {
        let arguments = json!({
            "path": "a.py", "content": "import os\n\n  x = \"1\"\n",
            "edits": [{"oldText": "a\nb", "newText": "a"}], "dry": false,
        });
        let text = text_of(&arguments);
        assert_eq!(
            text,
            "\"path\": \"a.py\"\n\"content\": |2\n  import os\n\n    x = \"1\"\n\"edits\":\n  -\n    \"oldText\": |2-\n      a\n      \
             b\n    \"newText\": \"a\"\n\"dry\": false"
        );
        assert_eq!(parsed(&text).unwrap().to_value(), arguments);
    }

    #[test]
    fn other_arguments_are_json_and_errors_name_their_place() {
        assert_eq!(text_of(&json!({"text": "late"})), "{\n  \"text\": \"late\"\n}\n");
        assert!(parsed("{\"a\": }").unwrap_err().starts_with("not JSON"));
        let error = parsed("a: |\n  x\n b: [").unwrap_err();
        assert!(error.starts_with("arguments:"), "{error}");
        assert!(parsed("text").unwrap_err().contains("a JSON object"));
    }

    proptest! {
        #[test]
        fn arguments_stay_the_same(texts in prop::collection::vec("[ a-z:#|\"'\\\\\t\n\r{}\\[\\],&*!>%@`-]{0,24}", 1..4), n: i64) {
            let arguments = json!({"n": n, "x y": texts[0], "list": texts, "deep": {"text": texts[texts.len() - 1]}});
            prop_assert_eq!(parsed(&text_of(&arguments)).unwrap().to_value(), arguments);
        }
    }
}
