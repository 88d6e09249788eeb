//! Arguments as text for an editor: JSON, or YAML with the lines of a text as lines, where a value has several.

use serde_json::Value;

use crate::cli::answers::{NOT_AN_OBJECT, edited_arguments};
use crate::config;
use crate::core::tool::Arguments;
use crate::lab::yaml;

/// The arguments as text. [`parsed`] returns the same arguments from it.
pub(super) fn text_of(arguments: &Value) -> String {
    let members = arguments.as_object().filter(|_| yaml::has_block(arguments));
    let yaml = members.map(yaml::write);
    let is_exact = |yaml: &String| parsed(yaml).is_ok_and(|read| read.to_value() == *arguments);
    yaml.filter(is_exact).unwrap_or_else(|| format!("{arguments:#}\n"))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_of_several_lines_is_edited_as_lines() {
        let arguments = json!({
            "path": "a.py", "content": "import os\n\n  x = \"1\"\n",
            "edits": [{"oldText": "  a\nb", "newText": "a"}], "dry": false,
        });
        let text = text_of(&arguments);
        assert_eq!(
            text,
            "path: a.py\ncontent: |\n  import os\n\n    x = \"1\"\nedits:\n  - oldText: |2-\n        a\n      b\n    newText: a\n\
             dry: false\n"
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
