//! Answers of a scenario to the pending items of its run.

use std::collections::VecDeque;

use super::answers::{AUTHOR, Answers, elicitation};
use crate::core::run::{Answer, AnswerForm, Channel, Decision, DecisionKind, HumanAnswer, PendingCall, PendingItem};
use crate::core::tool::{Ask, Choice, ElicitationResponses, Origin};
use crate::lab::scenario::{self, ApprovalDecision, Approvals, ExternalAnswer};

/// The answers of a scenario; after them those of a recording, if the model plays one.
pub(super) struct ScenarioAnswers {
    written: scenario::Answers,
    questions: VecDeque<String>,
    recorded: Option<Box<dyn Answers>>,
}

impl ScenarioAnswers {
    pub(super) fn new(written: scenario::Answers, recorded: Option<Box<dyn Answers>>) -> Self {
        let questions = written.questions.iter().cloned().collect();
        Self { written, questions, recorded }
    }

    fn own(&mut self, item: &PendingItem) -> Option<Answer> {
        let call = item.call()?;
        match item.form() {
            AnswerForm::Decision(_) => self.decision(&call).map(Answer::from),
            AnswerForm::Result { .. } => self.result(&call),
            AnswerForm::Choice(ask) => {
                let choice = choice(ask, self.questions.pop_front()?);
                Some(HumanAnswer { choice, by: AUTHOR.to_owned(), via: Channel::Library }.into())
            }
            AnswerForm::Elicitation { questions, delivery } => {
                let response = |key: &String| {
                    let responses = &self.written.elicitations;
                    Some((key.clone(), responses.get(key).or_else(|| responses.get("*"))?.clone()))
                };
                let responses = questions.keys().map(response).collect::<Option<ElicitationResponses>>()?;
                Some(elicitation(responses, delivery))
            }
            AnswerForm::Background(_) | AnswerForm::Continue { .. } => None,
        }
    }

    fn decision(&self, call: &PendingCall<'_>) -> Option<Decision> {
        let (decision, reason) = match &self.written.approvals {
            Approvals::All(decision) => (*decision, None),
            Approvals::Rules(rules) => {
                let own_name = call.tool.name();
                let fits = |rule: &&scenario::ApprovalRule| rule.tool.fits(call.name.as_str(), Some(own_name));
                let rule = rules.iter().find(fits)?;
                (rule.decision, rule.reason.clone())
            }
        };
        let kind = match decision {
            ApprovalDecision::Approve => DecisionKind::Approve,
            ApprovalDecision::Deny => DecisionKind::Deny,
        };
        Some(Decision { reason, ..Decision::new(kind, AUTHOR) })
    }

    fn result(&self, call: &PendingCall<'_>) -> Option<Answer> {
        let Origin::External { tool } = &call.tool.origin else { return None };
        Some(match self.written.external.get(tool)? {
            ExternalAnswer::Result(value) => Answer::output(value.clone()),
            ExternalAnswer::Error(message) => Answer::error(message.clone()),
        })
    }
}

impl Answers for ScenarioAnswers {
    fn answer(&mut self, item: &PendingItem) -> Option<Answer> {
        let own = self.own(item);
        own.or_else(|| self.recorded.as_mut()?.answer(item))
    }
}

/// One of the options, or an answer in words.
fn choice(ask: &Ask, answer: String) -> Choice {
    match ask.options.contains(&answer) {
        true => Choice { chosen: vec![answer], text: None },
        false => Choice { chosen: Vec::new(), text: Some(answer) },
    }
}

/// The key of a scenario that answers an item, for an error.
pub(super) fn remedy(item: &PendingItem) -> String {
    let name = item.call().map(|call| match &call.tool.origin {
        Origin::External { tool } => tool.clone(),
        Origin::Mcp { .. } | Origin::Builtin { .. } => call.name.to_string(),
    });
    let name = name.unwrap_or_default();
    match item.form() {
        AnswerForm::Decision(_) => {
            format!(
                "the call of `{name}` requires approval; add `answers: {{ approvals: approve }}`, or a rule for the tool"
            )
        }
        AnswerForm::Result { .. } => {
            format!(
                "the external tool `{name}` has no result; add `answers: {{ external: {{ {name}: {{ result: … }} }} }}`"
            )
        }
        AnswerForm::Choice(ask) => {
            format!("the model asks: {}; add the answer to `answers: {{ questions: […] }}`", ask.question)
        }
        AnswerForm::Elicitation { questions, .. } => {
            let keys: Vec<&str> = questions.keys().map(String::as_str).collect();
            let key = keys.first().copied().unwrap_or("*");
            format!(
                "the server of `{name}` asks for {}; add `answers: {{ elicitations: {{ {key}: {{ action: accept, content: {{ … }} \
                 }} }} }}`",
                keys.join(", ")
            )
        }
        AnswerForm::Background(_) | AnswerForm::Continue { .. } => "the run waits".to_owned(),
    }
}
