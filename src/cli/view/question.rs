//! Elicitation questions: displayed as lines, and as the value of a flag that answers them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::cli::elicitation_form::Field;
use crate::cli::text::block;
use crate::core::tool::{ElicitationResponse, Question, escape_untrusted};

/// The full question, because the user must see all of it to answer. URLs are never shortened.
pub(in crate::cli) fn question_lines(key: &str, question: &Question) -> Vec<String> {
    let message = block(question.message()).replace('\n', "\n  ");
    let mut lines = vec![format!("{}: {message}", escape_untrusted(key))];
    match question {
        Question::Form { schema, .. } => lines.extend(Field::from_form(schema).iter().map(|field| {
            let choices = field.choices();
            let choices = if choices.is_empty() { String::new() } else { format!(" ({})", choices.join(", ")) };
            format!("  {}{choices}", field.describe())
        })),
        Question::Url { url, .. } => {
            lines.push(format!("  {}", escape_untrusted(url)));
            lines.push("  (the server gives this address; open it yourself if you trust it)".into());
        }
    }
    lines
}

/// A template for the value of the answering flag: the fields of a single form, or an object by key for several
/// questions. `None` for a single URL.
pub(in crate::cli) fn answering(questions: &BTreeMap<String, Question>) -> Option<Value> {
    let mut each = questions.values();
    match (each.next(), each.next()) {
        (Some(Question::Url { .. }), None) => None,
        (Some(Question::Form { schema, .. }), None) => Some(Value::Object(filled(schema))),
        (_, _) => {
            Some(json!(questions.iter().map(|(key, question)| (key, reaction(question))).collect::<BTreeMap<_, _>>()))
        }
    }
}

fn reaction(question: &Question) -> ElicitationResponse {
    match question {
        Question::Form { schema, .. } => ElicitationResponse::accept(filled(schema)),
        Question::Url { .. } => ElicitationResponse::done(),
    }
}

/// The required fields, or all fields if no field is required.
fn filled(schema: &Value) -> Map<String, Value> {
    let fields = Field::from_form(schema);
    let has_required = fields.iter().any(|field| field.required);
    let shown = fields.iter().filter(|field| field.required || !has_required);
    shown.map(|field| (field.name.clone(), field.example())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Question {
        let schema = json!({"type": "object", "required": ["seats"], "properties": {
            "seats": {"type": "integer", "minimum": 1}, "meal": {"enum": ["beef", "fish"]},
        }});
        Question::Form { message: "Please book.\nNow.".into(), schema }
    }

    fn address() -> Question {
        Question::Url { message: "Sign in.".into(), url: format!("https://example.com/?{}", "x".repeat(300)) }
    }

    #[test]
    fn a_question_is_shown_whole() {
        let form = question_lines("booking", &form());
        let expected = [
            "booking: Please book.\n  | Now.",
            "  seats: integer, at least 1, required",
            "  meal: one of these (1 beef, 2 fish)",
        ];
        assert_eq!(form, expected);
        assert!(question_lines("login", &address())[1].ends_with(&"x".repeat(300)));
    }

    #[test]
    fn the_flag_is_as_short_as_the_questions_allow() {
        let defaults = |questions: &[(&str, Question)]| {
            answering(&questions.iter().map(|(key, question)| ((*key).to_owned(), question.clone())).collect())
        };
        assert_eq!(defaults(&[("a", form())]), Some(json!({"seats": 1})));
        assert_eq!(defaults(&[("a", address())]), None);
        let both = json!({"a": {"action": "accept", "content": {"seats": 1}}, "b": {"action": "accept"}});
        assert_eq!(defaults(&[("a", form()), ("b", address())]), Some(both));
    }
}
