//! Answers to what the servers of calls want to know, as flags: `--answer` and `--decline`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{CallArg, who};
use crate::cli::error::CliError;
use crate::cli::text::list;
use crate::core::id::CallId;
use crate::core::run::{Answer, Channel, ElicitationAnswer, Event, JournalEntry};
use crate::core::tool::{ElicitationResponse, ElicitationResponses, Question};

/// The answers for these calls. What each was asked last stands in the journal; whether it still waits, the runner says.
pub(in crate::cli) fn inputs(
    answered: &[CallArg],
    declined: &[String],
    journal: &[JournalEntry],
) -> Result<Vec<(CallId, ElicitationAnswer)>, CliError> {
    let mut inputs = Vec::new();
    for CallArg { call, value } in answered {
        let reactions = reactions(value.as_deref(), &questions(call, journal))
            .map_err(|why| CliError::usage(format!("--answer {call}: {why}")))?;
        inputs
            .push((call.clone(), ElicitationAnswer { reactions, by: who(), via: Channel::CommandLine, repeat: false }));
    }
    for call in declined.iter().map(|call| CallId::from(call.as_str())) {
        let keys = questions(&call, journal).into_keys();
        let reactions = keys.map(|key| (key, ElicitationResponse::decline())).collect();
        inputs.push((call, ElicitationAnswer { reactions, by: who(), via: Channel::CommandLine, repeat: false }));
    }
    Ok(inputs)
}

/// Notes consent to send these calls a second time beside the answers to their servers.
pub(in crate::cli) fn repeat(answers: &mut [(CallId, Answer)], calls: &[String]) -> Result<(), CliError> {
    for call in calls {
        let mut given = answers.iter_mut().filter(|(answered, _)| answered.as_str() == call);
        let Some((_, Answer::Elicitation(given))) = given.find(|(_, answer)| answer.elicitation().is_some()) else {
            let message = format!("--repeat {call}: the call is not answered");
            return Err(CliError::usage(message).with_remedy(format!("answer its server too: --answer {call}='{{…}}'")));
        };
        given.repeat = true;
    }
    Ok(())
}

fn questions(call: &CallId, journal: &[JournalEntry]) -> BTreeMap<String, Question> {
    let latest = journal.iter().rev().find_map(|recorded| {
        let (Event::InputRequested { call: of, needed, .. } | Event::InputRequired { call: of, needed, .. }) =
            &recorded.event
        else {
            return None;
        };
        (of == call).then(|| needed.questions.clone())
    });
    latest.unwrap_or_default()
}

/// What a text says to these questions. Nothing at all accepts them: an address was visited, a form holds its defaults.
/// An object is the reactions by key, or, where one form is asked for, the form.
pub(in crate::cli) fn reactions(
    text: Option<&str>,
    questions: &BTreeMap<String, Question>,
) -> Result<ElicitationResponses, String> {
    let Some(text) = text else {
        return Ok(questions.iter().map(|(key, question)| (key.clone(), plain_yes(question))).collect());
    };
    let object = match serde_json::from_str(text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err("an answer is a JSON object, for example {\"confirm\": true}".into()),
        Err(error) => return Err(format!("not JSON: {error}")),
    };
    if is_keyed(&object, questions) {
        let keyed: Result<ElicitationResponses, _> = serde_json::from_value(Value::Object(object));
        return keyed.map_err(|error| format!("{error}; write {}", keyed_form(questions)));
    }
    let mut each = questions.iter();
    match (each.next(), each.next()) {
        (Some((key, Question::Form { .. })), None) => Ok([(key.clone(), ElicitationResponse::accept(object))].into()),
        (Some((_, Question::Url { .. })), None) => {
            Err("there is an address to visit and nothing to fill in; leave `=…` out once it is done".into())
        }
        // The runner refuses it, and says why.
        (None, _) => Ok(ElicitationResponses::new()),
        (Some(_), Some(_)) => {
            let keys = list(questions.keys());
            Err(format!("several things are asked ({keys}); write {}", keyed_form(questions)))
        }
    }
}

fn plain_yes(question: &Question) -> ElicitationResponse {
    match question {
        Question::Form { .. } => ElicitationResponse::accept(Map::new()),
        Question::Url { .. } => ElicitationResponse::done(),
    }
}

/// Whether the members are reactions by key, and not the fields of a form: those are never objects.
fn is_keyed(object: &Map<String, Value>, questions: &BTreeMap<String, Question>) -> bool {
    let reaction_like = |(key, value): (&String, &Value)| {
        value.is_object() && (questions.contains_key(key) || value.get("action").is_some())
    };
    !object.is_empty() && object.iter().all(reaction_like)
}

fn keyed_form(questions: &BTreeMap<String, Question>) -> String {
    let member = |key: &String| format!("\"{key}\": {{\"action\": \"accept\", \"content\": {{…}}}}");
    format!("{{{}}}, where an action is accept, decline or cancel", list(questions.keys().map(member)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::answers::addressed;
    use crate::core::tool::ElicitationRequest;

    fn form() -> Question {
        Question::Form { message: "Sure?".into(), schema: json!({"type": "object"}) }
    }

    fn address() -> Question {
        Question::Url { message: "Sign in.".into(), url: "https://example.com".into() }
    }

    fn by_key(questions: &[(&str, Question)]) -> BTreeMap<String, Question> {
        questions.iter().map(|(key, question)| ((*key).to_owned(), question.clone())).collect()
    }

    fn answer_to(text: Option<&str>, questions: &[(&str, Question)]) -> Value {
        json!(reactions(text, &by_key(questions)).unwrap())
    }

    #[test]
    fn one_form_is_answered_by_its_fields_and_several_questions_by_key() {
        let accepted = json!({"a": {"action": "accept", "content": {"ok": true}}});
        assert_eq!(answer_to(Some("{\"ok\": true}"), &[("a", form())]), accepted);
        assert_eq!(answer_to(Some(&accepted.to_string()), &[("a", form())]), accepted);
        let both = json!({"a": {"action": "accept", "content": {}}, "b": {"action": "cancel"}});
        assert_eq!(answer_to(Some(&both.to_string()), &[("a", form()), ("b", address())]), both);
    }

    #[test]
    fn no_value_says_that_it_is_done_or_that_the_defaults_hold() {
        let done = json!({"a": {"action": "accept", "content": {}}, "b": {"action": "accept"}});
        assert_eq!(answer_to(None, &[("a", form()), ("b", address())]), done);
    }

    #[test]
    fn what_answers_nothing_is_refused_with_what_would() {
        let refused =
            |text: &str, questions: &[(&str, Question)]| reactions(Some(text), &by_key(questions)).unwrap_err();
        assert!(refused("yes", &[("a", form())]).starts_with("not JSON"));
        assert!(refused("[1]", &[("a", form())]).contains("is a JSON object"));
        assert!(refused("{\"x\": 1}", &[("b", address())]).contains("nothing to fill in"));
        let several = refused("{\"x\": 1}", &[("a", form()), ("b", form())]);
        assert!(several.contains("several things are asked (a, b); write {\"a\": {\"action\""), "{several}");
        let wrong = refused("{\"a\": {\"action\": \"yes\"}}", &[("a", form())]);
        assert!(wrong.contains("unknown variant `yes`"), "{wrong}");
    }

    #[test]
    fn a_call_is_answered_by_what_it_was_asked_last() {
        let event = |questions| {
            let needed = ElicitationRequest {
                questions: by_key(questions),
                state: None,
                task: None,
                restarts: false,
                interrupted: false,
            };
            Event::InputRequired { call: "c".into(), needed: needed.into(), wire: None }
        };
        let events = [event(&[("first", form())]), event(&[("second", form())])];
        let journal: Vec<JournalEntry> = (0..).zip(events).map(|(seq, event)| recorded(seq, event)).collect();
        let given = inputs(&[addressed("c={}").unwrap()], &["d".into()], &journal).unwrap();
        let answers: Vec<_> = given.iter().map(|(call, given)| (call.as_str(), json!(given.reactions))).collect();
        assert_eq!(answers, [("c", json!({"second": {"action": "accept", "content": {}}})), ("d", json!({}))]);
        let declined = inputs(&[], &["c".into()], &journal).unwrap();
        assert_eq!(json!(declined[0].1.reactions), json!({"second": {"action": "decline"}}));
    }

    fn recorded(seq: u64, event: Event) -> JournalEntry {
        JournalEntry { seq, at: jiff::Timestamp::UNIX_EPOCH, event }
    }
}
