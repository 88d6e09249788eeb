//! Answers to pending items: one variant for each way in which an item is settled from outside.

use serde_json::Value;

use super::unusable::unusable_result;
use super::{
    AnswerForm, Call, CallState, Decision, ElicitationAnswer, Event, HumanAnswer, PendingItem, ResumeError, Run,
};
use crate::id::CallId;
use crate::tool::{CallFailure, FailureKind, Outcome, ToolOutput};

const A_RESULT: &str = "a result from the caller";
const A_DECISION: &str = "a decision";
const AN_ANSWER: &str = "an answer to the model's question";
const ANSWERS: &str = "answers to its server's questions";

/// An answer to one pending item.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The result of an external call.
    Result(Outcome),
    /// The decision about a call that requires approval.
    Decision {
        decision: Box<Decision>,
        /// The digest of the call as it was shown to the approver ([`super::Binding::digest`]). If the call has changed
        /// since, the whole resume is refused.
        digest: Option<String>,
    },
    /// The answer to a question of the model.
    Question(HumanAnswer),
    /// The answers to the elicitation requests of a call's server.
    Elicitation(ElicitationAnswer),
}

impl Answer {
    /// The external call succeeded with this output; any JSON value.
    pub fn output(output: impl Into<Value>) -> Self {
        Self::Result(Outcome::Returned(ToolOutput::from_value(output.into())))
    }

    /// The external call failed; the model reads the message.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Result(Outcome::Returned(ToolOutput::error(message)))
    }

    /// The caller will not run the external call.
    pub fn abandoned() -> Self {
        let message = "The application did not run this call.".into();
        Self::Result(Outcome::Failed(CallFailure { kind: FailureKind::Abandoned, message }))
    }

    /// The same decision, bound to the call as it was shown to the approver. Other answers stay as they are.
    #[must_use]
    pub fn with_digest(self, digest: impl Into<String>) -> Self {
        match self {
            Self::Decision { decision, .. } => Self::Decision { decision, digest: Some(digest.into()) },
            Self::Result(_) | Self::Question(_) | Self::Elicitation(_) => self,
        }
    }

    /// The decision, if it is one.
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Decision { decision, .. } => Some(decision),
            Self::Result(_) | Self::Question(_) | Self::Elicitation(_) => None,
        }
    }

    /// The elicitation answer, if it is one.
    pub fn elicitation(&self) -> Option<&ElicitationAnswer> {
        match self {
            Self::Elicitation(answer) => Some(answer),
            Self::Result(_) | Self::Decision { .. } | Self::Question(_) => None,
        }
    }

    /// Whether this call has a pending item that the answer settles.
    pub fn settles(&self, call: &CallId, pending: &[PendingItem]) -> bool {
        pending.iter().any(|item| item.call_id() == Some(call) && self.fits(item.form()))
    }

    fn fits(&self, form: AnswerForm<'_>) -> bool {
        match self {
            Self::Result(_) => matches!(form, AnswerForm::Result { .. }),
            Self::Decision { .. } => matches!(form, AnswerForm::Decision(_)),
            Self::Question(_) => matches!(form, AnswerForm::Choice(_)),
            Self::Elicitation(_) => matches!(form, AnswerForm::Elicitation { .. }),
        }
    }

    fn describe(&self) -> &'static str {
        match self {
            Self::Result(_) => A_RESULT,
            Self::Decision { .. } => A_DECISION,
            Self::Question(_) => AN_ANSWER,
            Self::Elicitation(_) => ANSWERS,
        }
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self::Result(outcome)
    }
}

impl From<Decision> for Answer {
    fn from(decision: Decision) -> Self {
        Self::Decision { decision: Box::new(decision), digest: None }
    }
}

impl From<HumanAnswer> for Answer {
    fn from(answer: HumanAnswer) -> Self {
        Self::Question(answer)
    }
}

impl From<ElicitationAnswer> for Answer {
    fn from(answer: ElicitationAnswer) -> Self {
        Self::Elicitation(answer)
    }
}

/// How an answer relates to the journal.
pub(super) enum Novelty {
    /// A pending item waits for it.
    New,
    /// The journal has the same answer.
    Repeated,
}

impl Run {
    /// Whether the answer addresses a call that waits for its kind, or repeats an earlier answer.
    pub(super) fn novelty(
        &self,
        pending: &[PendingItem],
        call: &CallId,
        answer: &Answer,
    ) -> Result<Novelty, ResumeError> {
        let repeated = self.repeats(call, answer);
        if let Some(item) = pending.iter().find(|item| item.call_id() == Some(call)) {
            if answer.fits(item.form()) {
                return Ok(Novelty::New);
            }
            if repeated == Some(true) {
                return Ok(Novelty::Repeated);
            }
            let (expected, given) = (awaited(item.form()).to_owned(), answer.describe().to_owned());
            return Err(ResumeError::WrongKind { call_id: call.clone(), expected, given });
        }
        match repeated {
            Some(true) => Ok(Novelty::Repeated),
            None if self.is_late(call) => Err(ResumeError::TooLate { call_id: call.clone() }),
            Some(false) => Err(ResumeError::AlreadySettled { call_id: call.clone() }),
            None if self.ending().is_some() => Err(self.over()),
            None if self.calls_seen.contains(call) && self.call(call).is_none_or(|call| call.is_settled()) => {
                Err(ResumeError::AlreadySettled { call_id: call.clone() })
            }
            None => Err(ResumeError::UnknownCall { call_id: call.clone() }),
        }
    }

    /// The event of an answer that settles a pending item. `None` if it repeats the answer that led to the current
    /// question: the answer is then a client's retry and settles nothing, unless its sender saw the current question.
    pub(super) fn settled_by(
        &self,
        call: &CallId,
        answer: &Answer,
        expected_version: Option<u64>,
    ) -> Result<Option<Event>, ResumeError> {
        let id = call.clone();
        let is_retry = expected_version.is_none() && self.repeats(call, answer) == Some(true);
        let unless = |refusal: Option<ResumeError>, event: Event| refusal.map_or(Ok(Some(event)), Err);
        match answer {
            Answer::Result(outcome) => {
                let (outcome, refusal) = (outcome.clone().into(), unusable_result(call, outcome));
                unless(refusal, Event::CallCompleted { call: id, outcome, stderr: Vec::new(), wire: None })
            }
            Answer::Decision { digest, .. } if is_retry && digest.is_none() && self.asks_again(call) => Ok(None),
            Answer::Decision { decision, .. } => {
                let event = Event::ApprovalDecided { call: id, decision: decision.as_ref().clone() };
                unless(self.unusable_decision(call, decision), event)
            }
            Answer::Question(answer) => {
                unless(self.unusable_answer(call, answer), Event::QuestionAnswered { call: id, answer: answer.clone() })
            }
            Answer::Elicitation(_) if is_retry => Ok(None),
            Answer::Elicitation(given) if self.is_unconfirmed_repeat(call, given) => {
                Err(ResumeError::RepeatUnconfirmed { call_id: id })
            }
            Answer::Elicitation(given) => {
                self.with_defaults(call, given).map(|given| Some(Event::InputGiven { call: id, given }))
            }
        }
    }

    /// Whether the answer repeats the call's last one of its kind; `None` if the call has had none.
    fn repeats(&self, call: &CallId, answer: &Answer) -> Option<bool> {
        match answer {
            Answer::Result(outcome) => self.external_results.get(call).map(|before| **before == *outcome),
            Answer::Decision { decision, .. } => self.decisions.get(call).map(|before| before.is_repeated_by(decision)),
            Answer::Question(answer) => self.question_answers.get(call).map(|before| before == answer),
            Answer::Elicitation(given) => self.inputs_given.get(call).map(|before| before.is_repeated_by(given)),
        }
    }

    /// Whether a call that was approved requires approval again, because it is in doubt or has changed.
    fn asks_again(&self, id: &CallId) -> bool {
        self.call(id).is_some_and(|call| call.sent || !call.drift.is_empty())
    }

    /// Whether these answers would send a call a second time without explicit consent to that (law 4).
    fn is_unconfirmed_repeat(&self, id: &CallId, given: &ElicitationAnswer) -> bool {
        let is_repeat =
            |call: &Call| matches!(&call.state, CallState::NeedsInput(needed) if call.needs_consent_to_repeat(needed));
        given.accepts() && !given.repeat && self.call(id).is_some_and(is_repeat)
    }
}

fn awaited(form: AnswerForm<'_>) -> &str {
    match form {
        AnswerForm::Result { .. } => A_RESULT,
        AnswerForm::Decision(_) => A_DECISION,
        AnswerForm::Choice(_) => AN_ANSWER,
        AnswerForm::Elicitation { .. } => ANSWERS,
        AnswerForm::Background(work) => work.awaited,
        AnswerForm::Continue { .. } => "the run to be continued",
    }
}
