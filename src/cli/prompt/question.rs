//! Elicitation prompts: ask the user the questions of an MCP server. A URL comes from the server, so it is shown in
//! full and never opened.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value};

use super::Prompt;
use super::console::{Accepts, Console};
use crate::cli::elicitation_form::Field;
use crate::cli::text::block;
use crate::core::tool::{ElicitationResponse, ElicitationResponses, Question, escape_untrusted};

/// Help text for the keys, after that of the key that accepts.
const KEYS: &str = "    d     sends the server that you decline
    c     sends the server that you cancel
    q     sends nothing now; the run stays pending";

/// The user's response to one question.
enum QuestionResponse {
    ElicitationResponse(ElicitationResponse),
    Later,
}

/// What the user typed for a field, and its value; `None` for a field that is left out.
type Filled = (String, Option<Value>);

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
        let mut filled = vec![None; fields.len()];
        loop {
            let answer = self.key("  [a]nswer, [d]ecline, [c]ancel, [q] later: ")?;
            return Ok(QuestionResponse::ElicitationResponse(match answer.as_deref().map(str::trim) {
                None | Some("q" | "quit") => return Ok(QuestionResponse::Later),
                Some("a" | "answer" | "y" | "yes") => match self.filled(&fields, &mut filled)? {
                    Some(content) => ElicitationResponse::accept(content),
                    None => continue,
                },
                Some("d" | "decline" | "n" | "no") => ElicitationResponse::decline(),
                Some("c" | "cancel") => ElicitationResponse::cancel(),
                Some(_) => {
                    self.say("    a, y  asks for each field; Esc goes back to the one before")?;
                    self.say(KEYS)?;
                    continue;
                }
            }));
        }
    }

    /// Asks for all fields of a form. Esc goes back to the field before, with what was typed; `None` before the first.
    fn filled(&mut self, fields: &[Field], filled: &mut [Option<Filled>]) -> io::Result<Option<Map<String, Value>>> {
        let mut at = 0;
        while let (Some(field), Some(before)) = (fields.get(at), filled.get_mut(at)) {
            if let Some(about) = &field.about {
                self.say(&format!("  {}", indented(about)))?;
            }
            for choice in field.choices() {
                self.say(&format!("      {choice}"))?;
            }
            match self.field(field, before.as_ref().map(|(typed, _)| typed.as_str()))? {
                Some(now) => (*before, at) = (Some(now), at + 1),
                None if at == 0 => return Ok(None),
                None => at -= 1,
            }
        }
        let values = fields.iter().zip(filled.iter().flatten());
        Ok(Some(values.filter_map(|(field, (_, value))| Some((field.name.clone(), value.clone()?))).collect()))
    }

    /// Asks for a field, beginning with what was typed before; `None` if the user goes back.
    fn field(&mut self, field: &Field, before: Option<&str>) -> io::Result<Option<Filled>> {
        loop {
            let question = format!("    {} > ", field.describe());
            // A single letter decides here, so a paste is not accepted.
            let typed = match before {
                _ if field.is_yes_or_no() => self.key(&question)?,
                Some(before) => self.entry(&question, Accepts::Change(before))?,
                None => self.text(&question)?,
            };
            let Some(typed) = typed else { return Ok(None) };
            let value = match (typed.trim(), &field.default) {
                ("", Some(default)) => Ok(Some(default.clone())),
                ("", None) if !field.required => Ok(None),
                ("", None) => Err("this cannot be left out".to_owned()),
                (text, _) => field.read(text).map(Some),
            };
            match value {
                Ok(value) => return Ok(Some((typed, value))),
                Err(why) => self.say(&format!("    {why}"))?,
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
                    self.say("    y     tells the server that you were there")?;
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
    fn esc_goes_back_to_the_field_before_and_from_the_first_to_the_decision() {
        let typed = "a\n3\nAda\n\u{1b}\nBob\nlate\n";
        let expected = json!({"action": "accept", "content": {"seats": 3, "name": "Bob", "note": "late"}});
        assert_eq!(answered(&[("booking", form())], typed).0, Some(json!({"booking": expected})));
        let back = answered(&[("booking", form())], "a\n\u{1b}\nd\n").0;
        assert_eq!(back, Some(json!({"booking": {"action": "decline"}})));
    }

    #[test]
    fn a_value_of_another_format_is_asked_again_at_its_field() {
        let schema = json!({"type": "object", "properties": {"when": {"type": "string", "format": "date"}}});
        let form = Question::Form { message: "When?".into(), schema };
        let (reactions, output) = answered(&[("trip", form)], "a\ntomorrow\n2026-12-24\n");
        assert_eq!(reactions, Some(json!({"trip": {"action": "accept", "content": {"when": "2026-12-24"}}})));
        assert!(output.contains("    type a date, such as 2026-12-24\n"), "{output}");
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
