//! Answers to the pending items of a test run, from a recording or a scenario.

use std::collections::BTreeMap;

use crate::core::run::{
    Answer, AnswerForm, Channel, Decision, DecisionKind, Delivery, ElicitationAnswer, HumanAnswer, PendingItem,
};
use crate::core::tool::{Arguments, ElicitationResponses};
use crate::lab::recording::{RecordedCall, RecordedDecision, Recording};

/// The author of the answers, for the journal.
pub(super) const AUTHOR: &str = "toolgate mcp test";

/// A source of answers.
pub(super) trait Answers: Send {
    /// The answer to an item; `None` if the file has none.
    fn answer(&mut self, item: &PendingItem) -> Option<Answer>;
}

/// The answers that a run received when it was recorded, by the names of the tools and in their order. An approval that
/// was not requested then is given.
pub(super) struct RecordedAnswers {
    /// The calls of each tool that have not been used yet, latest first.
    calls: BTreeMap<String, Vec<RecordedCall>>,
    /// The recorded call of each call of the run, with the number of its answered elicitations.
    chosen: BTreeMap<String, (RecordedCall, usize)>,
}

impl RecordedAnswers {
    pub(super) fn new(recording: &Recording) -> Self {
        let mut calls: BTreeMap<String, Vec<RecordedCall>> = BTreeMap::new();
        for call in recording.calls() {
            calls.entry(call.tool.clone()).or_default().insert(0, call.clone());
        }
        Self { calls, chosen: BTreeMap::new() }
    }

    /// The recorded call that corresponds to the call of an item.
    fn recorded(&mut self, item: &PendingItem) -> Option<&mut (RecordedCall, usize)> {
        let call = item.call()?;
        let id = call.id.to_string();
        if !self.chosen.contains_key(&id) {
            let unused = self.calls.get_mut(call.name.as_str())?;
            let same_id = unused.iter().position(|recorded| recorded.id == id);
            let recorded = same_id.map(|position| unused.remove(position)).or_else(|| unused.pop())?;
            self.chosen.insert(id.clone(), (recorded, 0));
        }
        self.chosen.get_mut(&id)
    }
}

impl Answers for RecordedAnswers {
    fn answer(&mut self, item: &PendingItem) -> Option<Answer> {
        let recorded = self.recorded(item);
        match item.form() {
            AnswerForm::Decision(_) => {
                let recorded = recorded.and_then(|(call, _)| call.decision.clone());
                Some(recorded.map_or_else(approved, |recorded| decision(&recorded)).into())
            }
            AnswerForm::Result { .. } => recorded.and_then(|(call, _)| call.result.outcome().ok()).map(Answer::Result),
            AnswerForm::Choice(_) => recorded
                .and_then(|(call, _)| call.choice.clone())
                .map(|choice| HumanAnswer { choice, by: AUTHOR.to_owned(), via: Channel::Library }.into()),
            AnswerForm::Elicitation { delivery, .. } => {
                let (call, answered) = recorded?;
                let responses = call.elicitations.get(*answered)?.clone();
                *answered += 1;
                Some(elicitation(responses, delivery))
            }
            AnswerForm::Background(_) | AnswerForm::Continue { .. } => None,
        }
    }
}

/// An approval of one call.
pub(super) fn approved() -> Decision {
    Decision::new(DecisionKind::Approve, AUTHOR)
}

fn decision(recorded: &RecordedDecision) -> Decision {
    Decision {
        reason: recorded.reason.clone(),
        edited_arguments: recorded.edited_arguments.clone().map(Arguments::Object),
        ..Decision::new(recorded.answer, AUTHOR)
    }
}

/// The responses to all questions of a call. A call that had begun is sent again, as the file says what to answer.
pub(super) fn elicitation(reactions: ElicitationResponses, delivery: Delivery) -> Answer {
    let repeat = match delivery {
        Delivery::Repeated => true,
        Delivery::Held | Delivery::Continued | Delivery::Restarted => false,
    };
    ElicitationAnswer { reactions, by: AUTHOR.to_owned(), via: Channel::Library, repeat }.into()
}
