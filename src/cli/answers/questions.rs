//! Answers to the model's own questions, as text: an option by its words, or anything else where that is allowed.

use super::{CallArg, who};
use crate::core::id::CallId;
use crate::core::run::{Channel, History, HumanAnswer, JournalEntry};
use crate::core::tool::{Ask, Builtin, Choice};

/// Of the texts that were given, those that answer a question of the model's, and the others.
pub(in crate::cli) fn questions(
    answered: &[CallArg],
    journal: &[JournalEntry],
) -> (Vec<(CallId, HumanAnswer)>, Vec<CallArg>) {
    let (mut answers, mut others) = (Vec::new(), Vec::new());
    for given in answered {
        match model_question(&given.call, journal) {
            Some(ask) => {
                let choice = choice(given.value.as_deref().unwrap_or_default(), &ask);
                let answer = HumanAnswer { choice, by: who(), via: Channel::CommandLine };
                answers.push((given.call.clone(), answer));
            }
            None => others.push(given.clone()),
        }
    }
    (answers, others)
}

/// The question that the model put with this call, if it put one.
pub(in crate::cli) fn model_question(call: &CallId, journal: &[JournalEntry]) -> Option<Ask> {
    let history = History::from_journal(journal)?;
    let call = history.call(call).filter(|call| call.requested.name == Builtin::AskHuman.name())?;
    Ask::parse(call.arguments().as_object()?).ok()
}

/// What a text says to a question: an option, if it is the words of one, or several as JSON, or its own words.
pub(in crate::cli) fn choice(text: &str, ask: &Ask) -> Choice {
    let is_option = |text: &str| ask.options.iter().any(|option| option == text);
    if is_option(text.trim()) {
        return Choice { chosen: vec![text.trim().to_owned()], text: None };
    }
    match serde_json::from_str::<Vec<String>>(text) {
        Ok(chosen) if !chosen.is_empty() && chosen.iter().all(|option| is_option(option)) => {
            Choice { chosen, text: None }
        }
        Ok(_) | Err(_) => Choice::text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask {
        let options = vec!["red".to_owned(), "blue".to_owned()];
        Ask { question: "Which?".into(), options, multiple: true, free_text: true }
    }

    #[test]
    fn an_option_is_chosen_by_its_words_and_everything_else_is_text() {
        let chosen = |options: &[&str]| Choice {
            chosen: options.iter().map(|option| (*option).to_owned()).collect(),
            text: None,
        };
        assert_eq!(choice(" red ", &ask()), chosen(&["red"]));
        assert_eq!(choice(r#"["red", "blue"]"#, &ask()), chosen(&["red", "blue"]));
        for text in ["green", "[\"green\"]", "[]", "reddish"] {
            assert_eq!(choice(text, &ask()), Choice::text(text));
        }
    }
}
