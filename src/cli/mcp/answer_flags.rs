//! Answers to a server's questions during a trial call, from the flags or from the person at the terminal.

use std::collections::BTreeMap;

use crate::cli::answers;
use crate::cli::error::CliError;
use crate::cli::prompt;
use crate::core::tool::{ElicitationResponse, ElicitationResponses, Question};

/// Answers given as flags.
#[derive(Clone, Debug, Default)]
pub(super) struct AnswerFlags {
    answered: Vec<Answer>,
    declined: Vec<String>,
}

#[derive(Clone, Debug)]
struct Answer {
    /// The key of the question, or `None` for a single question.
    key: Option<String>,
    /// `None` means that the address was visited, or that the form's defaults apply.
    value: Option<String>,
}

impl AnswerFlags {
    /// Reads the flags.
    pub(super) fn new(answers: &[String], declined: &[String]) -> Self {
        Self { answered: answers.iter().map(|text| Answer::read(text)).collect(), declined: declined.to_vec() }
    }

    /// The responses to all questions, if there is one for each.
    pub(super) fn reactions(
        &self,
        questions: &BTreeMap<String, Question>,
    ) -> Result<Option<ElicitationResponses>, CliError> {
        let mut reactions = ElicitationResponses::new();
        for (key, question) in questions {
            if self.declined.contains(key) {
                reactions.insert(key.clone(), ElicitationResponse::decline());
                continue;
            }
            let is_meant = |answer: &&Answer| match &answer.key {
                Some(named) => named == key,
                None => questions.len() == 1,
            };
            let Some(answer) = self.answered.iter().rev().find(is_meant) else { return Ok(None) };
            let only = [(key.clone(), question.clone())].into();
            let read = answers::reactions(answer.value.as_deref(), &only)
                .map_err(|why| CliError::usage(format!("--answer {key}: {why}")))?;
            reactions.extend(read);
        }
        if let Some((key, why)) = invalid_reason(questions, &reactions) {
            return Err(CliError::usage(format!("--answer {key} {why}")));
        }
        Ok(Some(with_defaults(questions, reactions)))
    }
}

impl Answer {
    /// `KEY=JSON`, `KEY`, or JSON alone.
    fn read(text: &str) -> Self {
        if text.trim_start().starts_with('{') {
            return Self { key: None, value: Some(text.to_owned()) };
        }
        match text.split_once('=') {
            Some((key, value)) => Self { key: Some(key.to_owned()), value: Some(value.to_owned()) },
            None => Self { key: Some(text.to_owned()), value: None },
        }
    }
}

/// Asks the person at the terminal. `None` when there is no person, or the person leaves a question open.
pub(super) async fn person(tool: &str, questions: &BTreeMap<String, Question>) -> Option<ElicitationResponses> {
    let mut prompt = prompt::at_terminal()?;
    let _open = prompt.withdrawal();
    let (heading, asked_questions) =
        (format!("The server of {tool} has a question before it continues:"), questions.clone());
    let asking =
        tokio::task::spawn_blocking(move || prompt.heading(&heading).and_then(|()| prompt.reactions(&asked_questions)));
    let reactions = asking.await.ok()?.ok()??;
    Some(with_defaults(questions, reactions))
}

fn invalid_reason<'a>(
    questions: &'a BTreeMap<String, Question>,
    reactions: &ElicitationResponses,
) -> Option<(&'a str, &'static str)> {
    questions.iter().find_map(|(key, question)| Some((key.as_str(), question.invalid_reason(reactions.get(key)?)?)))
}

fn with_defaults(questions: &BTreeMap<String, Question>, reactions: ElicitationResponses) -> ElicitationResponses {
    let filled = reactions.into_iter().map(|(key, reaction)| {
        let reaction = match questions.get(&key) {
            Some(question) => question.with_defaults(reaction),
            None => reaction,
        };
        (key, reaction)
    });
    filled.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn questions(keys: &[&str]) -> BTreeMap<String, Question> {
        let schema = json!({"type": "object", "properties": {"seats": {"type": "integer", "default": 2}}});
        let form = Question::Form { message: "How many?".into(), schema };
        keys.iter().map(|key| ((*key).to_owned(), form.clone())).collect()
    }

    fn reactions_to(answers: &[&str], declined: &[&str], keys: &[&str]) -> Option<Value> {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let prepared = AnswerFlags::new(&own(answers), &own(declined));
        prepared.reactions(&questions(keys)).unwrap().map(|reactions| json!(reactions))
    }

    #[test]
    fn an_answer_to_a_single_question_needs_no_key() {
        let accepted = json!({"a": {"action": "accept", "content": {"seats": 5}}});
        assert_eq!(reactions_to(&["{\"seats\": 5}"], &[], &["a"]), Some(accepted.clone()));
        assert_eq!(reactions_to(&["a={\"seats\": 5}"], &[], &["a"]), Some(accepted));
        assert_eq!(reactions_to(&["{\"seats\": 5}"], &[], &["a", "b"]), None);
    }

    #[test]
    fn every_question_needs_an_answer_and_defaults_fill_the_gaps() {
        let both = json!({"a": {"action": "accept", "content": {"seats": 2}}, "b": {"action": "decline"}});
        assert_eq!(reactions_to(&["a"], &["b"], &["a", "b"]), Some(both));
        assert_eq!(reactions_to(&["a"], &[], &["a", "b"]), None);
    }

    #[test]
    fn an_invalid_answer_is_rejected_with_its_key() {
        let error = AnswerFlags::new(&["a=5".into()], &[]).reactions(&questions(&["a"])).unwrap_err();
        assert!(error.to_string().starts_with("--answer a: an answer is a JSON object"), "{error}");
    }
}
