//! Forms of a tool result for a reader: text that repeats the structured content is shown once.

use serde_json::Value;

use crate::core::tool::ToolOutput;

/// The forms of a result that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct ShownForms {
    pub(in crate::cli) has_text: bool,
    pub(in crate::cli) has_structured: bool,
}

impl ShownForms {
    pub(in crate::cli) fn of(output: &ToolOutput) -> Self {
        let (has_text, has_structured) = match &output.structured {
            None => (true, false),
            Some(structured) => match mirror(&output.joined_text(), structured) {
                Mirror::Json => (false, true),
                Mirror::Wrapped => (true, false),
                Mirror::None => (true, true),
            },
        };
        Self { has_text, has_structured }
    }
}

/// How the text repeats the structured content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mirror {
    Json,
    /// The text is the content of an object with the single member `result`. Frameworks wrap values that are not
    /// objects in one.
    Wrapped,
    /// The text does not repeat it.
    None,
}

fn mirror(text: &str, structured: &Value) -> Mirror {
    let parsed = serde_json::from_str::<Value>(text).ok();
    if parsed.as_ref() == Some(structured) {
        return Mirror::Json;
    }
    let wrapped = structured.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("result"));
    match wrapped {
        Some(value) if value.as_str() == Some(text) || parsed.as_ref() == Some(value) => Mirror::Wrapped,
        Some(_) | None => Mirror::None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_content_is_recognised() {
        assert_eq!(mirror(r#"{"b": 2, "a": 1}"#, &json!({"a": 1, "b": 2})), Mirror::Json);
        assert_eq!(mirror("hello", &json!({"result": "hello"})), Mirror::Wrapped);
        assert_eq!(mirror("[1,2]", &json!({"result": [1, 2]})), Mirror::Wrapped);
        assert_eq!(mirror("three", &json!({"result": 3})), Mirror::None);
        assert_eq!(mirror("hello", &json!({"result": "hello", "more": 1})), Mirror::None);
    }
}
