//! Elicitation prompts: ask the user the questions of an MCP server. A URL comes from the server, so it is shown in
//! full and never opened.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value};

use super::Prompt;
use super::console::Console;
use crate::cli::elicitation_form::Field;
use crate::cli::text::block;
use crate::core::tool::{ElicitationResponse, ElicitationResponses, Question, escape_untrusted};

/// Help text for the keys.
const KEYS: &str = "\
    a, y  sends the server what you type, or that you visited the address
    d     sends the server that you decline
    c     sends the server that you cancel
    q     sends nothing now; the run stays pending";

/// The user's response to one question.
enum QuestionResponse {
    ElicitationResponse(ElicitationResponse),
    Later,
}

/// The user's response to one field.
enum FieldResponse {
    With(Value),
    Empty,
    /// The end of the input.
    Later,
}

impl<C: Console> Prompt<C> {
    /// Asks each question in turn. `None` if one stays unanswered: the server receives either all answers or no answer.
    pub(in crate::cli) fn reactions(
        &mut self,
        questions: &BTreeMap<String, Question>,
    ) -> io::Result<Option<ElicitationResponses>> {
        let mut reactions = ElicitationResponses::new();
        for (key, question) in questions {
            let taken = match question {
                Question::Form { message, schema } => self.form(message, schema)?,
                Question::Url { message, url } => self.address(message, url)?,
            };
            match taken {
                QuestionResponse::ElicitationResponse(reaction) => reactions.insert(key.clone(), reaction),
                QuestionResponse::Later => return Ok(None),
            };
        }
        Ok(Some(reactions))
    }

    fn form(&mut self, message: &str, schema: &Value) -> io::Result<QuestionResponse> {
        let fields = Field::from_form(schema);
        self.say(&format!("  {}", indented(message)))?;
        for field in &fields {
            self.say(&format!("    {}", field.describe()))?;
        }
        self.console.discard_typed_ahead()?;
        loop {
            let answer = self.key("  [a]nswer, [d]ecline, [c]ancel, [q] later: ")?;
            return Ok(QuestionResponse::ElicitationResponse(match answer.as_deref().map(str::trim) {
                None | Some("q" | "quit") => return Ok(QuestionResponse::Later),
                Some("a" | "answer" | "y" | "yes") => match self.filled(&fields)? {
                    Some(content) => ElicitationResponse::accept(content),
                    None => return Ok(QuestionResponse::Later),
                },
                Some("d" | "decline" | "n" | "no") => ElicitationResponse::decline(),
                Some("c" | "cancel") => ElicitationResponse::cancel(),
                Some(_) => {
                    self.say(KEYS)?;
                    continue;
                }
            }));
        }
    }

    /// Asks for all fields of a form; `None` at the end of the input.
    fn filled(&mut self, fields: &[Field]) -> io::Result<Option<Map<String, Value>>> {
        let mut content = Map::new();
        for field in fields {
            if let Some(about) = &field.about {
                self.say(&format!("  {}", indented(about)))?;
            }
            for choice in field.choices() {
                self.say(&format!("      {choice}"))?;
            }
            match self.field(field)? {
                FieldResponse::With(value) => drop(content.insert(field.name.clone(), value)),
                FieldResponse::Empty => {}
                FieldResponse::Later => return Ok(None),
            }
        }
        Ok(Some(content))
    }

    fn field(&mut self, field: &Field) -> io::Result<FieldResponse> {
        loop {
            let question = format!("    {} > ", field.describe());
            // A single letter decides here, so a paste is not accepted.
            let typed = if field.is_yes_or_no() { self.key(&question)? } else { self.text(&question)? };
            let Some(typed) = typed else { return Ok(FieldResponse::Later) };
            match (typed.trim(), &field.default) {
                ("", Some(default)) => return Ok(FieldResponse::With(default.clone())),
                ("", None) if !field.required => return Ok(FieldResponse::Empty),
                ("", None) => self.say("    this cannot be left out")?,
                (typed, _) => match field.read(typed) {
                    Ok(value) => return Ok(FieldResponse::With(value)),
                    Err(why) => self.say(&format!("    {why}"))?,
                },
            }
        }
    }

    fn address(&mut self, message: &str, url: &str) -> io::Result<QuestionResponse> {
        self.say(&format!("  {}", indented(message)))?;
        self.say(&format!("    {}", escape_untrusted(url)))?;
        self.say("  The server gives this address; open it yourself if you trust it.")?;
        self.console.discard_typed_ahead()?;
        loop {
            let answer = self.key("  [y] done there, [d]ecline, [c]ancel, [q] later: ")?;
            return Ok(QuestionResponse::ElicitationResponse(match answer.as_deref().map(str::trim) {
                None | Some("q" | "quit") => return Ok(QuestionResponse::Later),
                Some("y" | "yes" | "done") => ElicitationResponse::done(),
                Some("d" | "decline" | "n" | "no") => ElicitationResponse::decline(),
                Some("c" | "cancel") => ElicitationResponse::cancel(),
                Some(_) => {
                    self.say(KEYS)?;
                    continue;
                }
            }));
        }
    }
}

fn indented(text: &str) -> String {
    block(text).replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::console::Script;
    use super::*;

    fn answered(questions: &[(&str, Question)], typed: &str) -> (Option<Value>, String) {
        let questions = questions.iter().map(|(key, question)| ((*key).to_owned(), question.clone())).collect();
        let mut prompt = Prompt::new(Script::typing(typed));
        let reactions = prompt.reactions(&questions).unwrap();
        (reactions.map(|reactions| json!(reactions)), prompt.console.shown)
    }

    fn form() -> Question {
        let schema = json!({"type": "object", "required": ["seats", "name"], "properties": {
            "seats": {"type": "integer", "minimum": 1, "default": 2},
            "name": {"type": "string", "title": "Who flies?"},
            "note": {"type": "string"},
        }});
        Question::Form { message: "Please book.".into(), schema }
    }

    fn address() -> Question {
        Question::Url { message: "Sign in.".into(), url: "https://example.com/\u{202e}a?b=c".into() }
    }

    #[test]
    fn a_form_is_filled_field_by_field_and_invalid_values_are_asked_again() {
        let (reactions, output) = answered(&[("booking", form())], "a\nmany\n0\n\n\nAda\n\n");
        let expected = json!({"booking": {"action": "accept", "content": {"seats": 2, "name": "Ada"}}});
        assert_eq!(reactions, Some(expected));
        for line in [
            "type a whole number",
            "type a number of at least 1",
            "this cannot be left out",
            "Who flies?",
            "seats: integer, at least 1, required [2] > ",
        ] {
            assert!(output.contains(line), "{line}: {output}");
        }
    }

    #[test]
    fn a_url_is_shown_in_full_and_each_letter_gives_its_answer() {
        for (typed, action) in [("y\n", "accept"), ("x\nd\n", "decline"), ("c\n", "cancel")] {
            let (reactions, output) = answered(&[("login", address())], typed);
            assert_eq!(reactions, Some(json!({"login": {"action": action}})));
            assert!(output.contains("https://example.com/\\u{202e}a?b=c\n"), "{output}");
        }
    }

    #[test]
    fn one_question_left_open_leaves_all_open() {
        assert_eq!(answered(&[("a", address()), ("b", form())], "y\nq\n").0, None);
        assert_eq!(answered(&[("a", address()), ("b", form())], "y\na\n3\n").0, None, "the input ended in the form");
        let (both, _) = answered(&[("a", address()), ("b", form())], "y\nd\n");
        assert_eq!(both, Some(json!({"a": {"action": "accept"}, "b": {"action": "decline"}})));
    }
}
