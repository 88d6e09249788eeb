//! Input from outside for a run: results, decisions, messages, a cancellation. It is checked against the pending items
//! before anything is written; a refused input consumes nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::state::Phase;
use super::unusable::unusable_result;
use super::{
    Call, CallState, Channel, Decision, ElicitationAnswer, Ending, Event, HumanAnswer, PendingItem, ResumeError, Run,
};
use crate::core::chat::Message;
use crate::core::id::CallId;
use crate::core::tool::Outcome;
use crate::core::tool::result::shortened;

/// The maximum number of reasons reported for a refused input.
const MOST_TOLD: usize = 100;

/// An input for a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Results and decisions for pending items.
    Resume(Resume),
    /// A message of the user or the application.
    Message(Message),
    /// Extends the deadline of a pending item.
    Extend {
        /// The call.
        call: CallId,
        /// The new deadline.
        until: Timestamp,
        /// The person who extends it.
        by: String,
        /// The channel they use.
        via: Channel,
    },
    /// Cancels the run.
    Cancel {
        /// The reason.
        reason: Option<String>,
        /// The journal length that the sender saw; any other length is refused.
        expected_version: Option<u64>,
    },
}

/// Results and decisions, addressed by call id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resume {
    /// Results of external calls.
    pub results: Vec<(CallId, Outcome)>,
    /// Decisions about calls that wait for approval.
    pub decisions: Vec<(CallId, Decision)>,
    /// The content of decisions as it was shown to the approver: the digest of the binding. An outdated one is refused.
    pub seen: Vec<(CallId, String)>,
    /// Answers to the model's questions.
    pub answers: Vec<(CallId, HumanAnswer)>,
    /// Answers to the elicitation requests of servers.
    pub inputs: Vec<(CallId, ElicitationAnswer)>,
    /// Whether items may stay pending.
    pub partial: bool,
    /// The journal length that the sender saw; any other length is refused.
    pub expected_version: Option<u64>,
}

impl Resume {
    /// The calls that are addressed.
    fn calls(&self) -> BTreeSet<&CallId> {
        let results = self.results.iter().map(|(call, _)| call);
        let decisions = self.decisions.iter().map(|(call, _)| call);
        let answers = self.answers.iter().map(|(call, _)| call);
        results.chain(decisions).chain(answers).chain(self.inputs.iter().map(|(call, _)| call)).collect()
    }
}

impl Run {
    /// The events of an input. Empty if the journal already contains its content: repeating a resume changes nothing,
    /// and neither does cancelling a cancelled run.
    pub fn accept(&self, input: &Input) -> Result<Vec<Event>, Vec<ResumeError>> {
        match input {
            Input::Resume(resume) => self.accept_resume(resume),
            Input::Message(message) => {
                let event = Event::MessageAdded { message: message.clone() };
                match (self.ending(), self.admit(&event), self.unusable_message(message)) {
                    (Some(_), _, _) => Err(vec![self.over()]),
                    (None, Err(_), _) => Err(vec![ResumeError::EmptyMessage]),
                    (None, Ok(()), Some(refusal)) => Err(vec![refusal]),
                    (None, Ok(()), None) => Ok(vec![event]),
                }
            }
            Input::Extend { call, until, by, via } => self.accept_extension(call, *until, by, *via),
            Input::Cancel { reason, expected_version } => match self.ending() {
                Some(Ending::Cancelled { .. }) => Ok(Vec::new()),
                Some(_) => Err(vec![self.version_conflict(*expected_version).unwrap_or_else(|| self.over())]),
                None => {
                    if let Some(stale) = self.version_conflict(*expected_version) {
                        return Err(vec![stale]);
                    }
                    // A long reason must not prevent a cancellation.
                    let most = self.started.spec.limits.result_bytes();
                    let reason = reason.as_ref().map(|reason| shortened(reason, most));
                    Ok(vec![Event::Ended { ending: Ending::Cancelled { reason } }])
                }
            },
        }
    }

    /// Whether the time for a call ran out without an answer.
    pub(super) fn is_late(&self, id: &CallId) -> bool {
        self.expired.contains(id)
    }

    pub(super) fn over(&self) -> ResumeError {
        ResumeError::RunEnded { status: self.status().as_str().to_owned() }
    }

    /// The reasons to refuse a resume regardless of the content of its entries: calls that do not exist, wait for
    /// another kind of answer or are settled, calls that are answered twice, and a version that is not the run's.
    /// Content is checked only afterwards.
    pub fn misdirected(&self, resume: &Resume) -> Vec<ResumeError> {
        let owed = self.pending_items();
        let results = resume.results.iter().map(|(call, outcome)| {
            (call, "external_result", self.external_results.get(call).map(|before| **before == *outcome))
        });
        let decisions = resume.decisions.iter().map(|(call, decision)| {
            (call, "approval", self.decisions.get(call).map(|before| before.is_repeated_by(decision)))
        });
        let answers = resume.answers.iter();
        let answers =
            answers.map(|(call, answer)| (call, "question", self.answers.get(call).map(|before| before == answer)));
        let inputs = resume.inputs.iter().map(|(call, given)| {
            (call, "input", self.inputs_given.get(call).map(|before| before.is_repeated_by(given)))
        });
        let (mut refusals, mut twice, mut answered, mut is_new) = (Vec::new(), Vec::new(), BTreeSet::new(), false);
        for (call, kind, known) in results.chain(decisions).chain(answers).chain(inputs) {
            match self.judge(&owed, call, kind, known) {
                Ok(Taken::New) => is_new = true,
                Ok(Taken::Before) => {}
                Err(refusal) => refusals.push(refusal),
            }
            if !answered.insert(call) {
                twice.push(ResumeError::Duplicate { call_id: call.clone() });
            }
        }
        refusals.append(&mut twice);
        // A repetition is fine at any version; an empty resume refers to the run as the sender saw it.
        if refusals.is_empty() && (is_new || answered.is_empty()) {
            refusals.extend(self.version_conflict(resume.expected_version));
        }
        distinct(refusals)
    }

    fn accept_resume(&self, resume: &Resume) -> Result<Vec<Event>, Vec<ResumeError>> {
        let misdirected = self.misdirected(resume);
        if !misdirected.is_empty() {
            return Err(misdirected);
        }
        let owed = self.pending_items();
        let is_owed = |call: &CallId, kind: &str| owed.iter().any(|item| item.call_id() == call && item.kind() == kind);
        let mut facts = Vec::new();
        for (call, outcome) in resume.results.iter().filter(|(call, _)| is_owed(call, "external_result")) {
            facts.push(match unusable_result(call, outcome) {
                None => Ok(Event::CallCompleted {
                    call: call.clone(),
                    outcome: outcome.clone().into(),
                    stderr: Vec::new(),
                    wire: None,
                }),
                Some(refusal) => Err(refusal),
            });
        }
        for (call, decision) in resume.decisions.iter().filter(|(call, _)| is_owed(call, "approval")) {
            if !self.repeats_what_led_here(call, decision, resume) {
                facts.push(match self.unusable_decision(call, decision) {
                    None => Ok(Event::ApprovalDecided { call: call.clone(), decision: decision.clone() }),
                    Some(refusal) => Err(refusal),
                });
            }
        }
        for (call, answer) in resume.answers.iter().filter(|(call, _)| is_owed(call, "question")) {
            facts.push(match self.unusable_answer(call, answer) {
                None => Ok(Event::QuestionAnswered { call: call.clone(), answer: answer.clone() }),
                Some(refusal) => Err(refusal),
            });
        }
        for (call, given) in resume.inputs.iter().filter(|(call, _)| is_owed(call, "input")) {
            // The same answers once more are a client's retry, unless their sender saw the new questions.
            let is_repeated = self.inputs_given.get(call).is_some_and(|before| before.is_repeated_by(given));
            if is_repeated && resume.expected_version.is_none() {
                continue;
            }
            facts.push(match self.is_unconfirmed_repeat(call, given) {
                true => Err(ResumeError::RepeatUnconfirmed { call_id: call.clone() }),
                false => {
                    let given = self.with_defaults(call, given);
                    given.map(|given| Event::InputGiven { call: call.clone(), given })
                }
            });
        }
        let mut events = Vec::new();
        let mut refusals = Vec::new();
        for fact in facts {
            match fact {
                Ok(event) => events.push(event),
                Err(refusal) => refusals.push(refusal),
            }
        }
        if refusals.is_empty() && !events.is_empty() && !resume.partial {
            let answered = resume.calls();
            let wanting = owed.iter().filter(|item| item.wants_answer());
            let missing = wanting.map(PendingItem::call_id).filter(|id| !answered.contains(id));
            let missing: Vec<CallId> = missing.cloned().collect();
            if !missing.is_empty() {
                refusals.push(ResumeError::Incomplete { missing });
            }
        }
        let refusals = distinct(refusals);
        if refusals.is_empty() { Ok(events) } else { Err(refusals) }
    }

    /// Whether a decision repeats an earlier one for a call that was approved and requires approval again, because it
    /// is in doubt or has changed. The same approval once more is a client's retry, not another approval, unless its
    /// sender states that they saw the current question.
    fn repeats_what_led_here(&self, id: &CallId, decision: &Decision, resume: &Resume) -> bool {
        let is_asked_again = self.call(id).is_some_and(|call| call.sent || !call.drift.is_empty());
        let repeats = self.decisions.get(id).is_some_and(|before| before.is_repeated_by(decision));
        let saw = resume.expected_version.is_some() || resume.seen.iter().any(|(call, _)| call == id);
        is_asked_again && repeats && !saw
    }

    /// Whether these answers would send a call a second time without explicit consent to that (law 4).
    fn is_unconfirmed_repeat(&self, id: &CallId, given: &ElicitationAnswer) -> bool {
        let is_repeat = |call: &Call| match &call.state {
            CallState::NeedsInput(needed) => call.needs_consent_to_repeat(needed),
            CallState::New
            | CallState::Selected
            | CallState::Asked { .. }
            | CallState::Cleared
            | CallState::Started
            | CallState::Task(_)
            | CallState::Settled(_) => false,
        };
        given.accepts() && !given.repeat && self.call(id).is_some_and(is_repeat)
    }

    fn version_conflict(&self, expected_version: Option<u64>) -> Option<ResumeError> {
        let expected = expected_version.filter(|expected| *expected != self.length)?;
        Some(ResumeError::VersionConflict { expected, actual: self.length, status: self.status().as_str().to_owned() })
    }

    /// The current pending items, including those of a turn whose other calls are still running.
    pub fn pending_items(&self) -> Vec<PendingItem> {
        match &self.phase {
            Phase::Working { turn, .. } => turn.calls.iter().filter_map(Self::pending_item).collect(),
            Phase::Ready { .. }
            | Phase::Asking(_)
            | Phase::Retrying { .. }
            | Phase::Validating { .. }
            | Phase::Accepted { .. }
            | Phase::Ended(_) => Vec::new(),
        }
    }

    fn judge(
        &self,
        owed: &[PendingItem],
        call: &CallId,
        given: &str,
        known: Option<bool>,
    ) -> Result<Taken, ResumeError> {
        if let Some(item) = owed.iter().find(|item| item.call_id() == call) {
            if item.kind() == given {
                return Ok(Taken::New);
            }
            if known == Some(true) {
                return Ok(Taken::Before);
            }
            let (owed, given) = (describe(item.kind()), describe(given));
            return Err(ResumeError::WrongKind { call_id: call.clone(), owed, given });
        }
        match known {
            Some(true) => Ok(Taken::Before),
            None if self.is_late(call) => Err(ResumeError::TooLate { call_id: call.clone() }),
            Some(false) => Err(ResumeError::AlreadySettled { call_id: call.clone() }),
            None if self.ending().is_some() => Err(self.over()),
            None if self.calls_seen.contains(call) && self.call(call).is_none_or(|call| call.is_settled()) => {
                Err(ResumeError::AlreadySettled { call_id: call.clone() })
            }
            None => Err(ResumeError::UnknownCall { call_id: call.clone() }),
        }
    }
}

enum Taken {
    New,
    Before,
}

fn describe(kind: &str) -> String {
    let words = match kind {
        "approval" => "a decision",
        "question" => "an answer to the model's question",
        "input" => "answers to its server's questions",
        "task" => "its server to finish the task",
        _ => "a result from the caller",
    };
    words.into()
}

/// Removes duplicates: a refusal that concerns the whole run is not repeated for each call.
fn distinct(refusals: Vec<ResumeError>) -> Vec<ResumeError> {
    let mut distinct: Vec<ResumeError> = Vec::new();
    for refusal in refusals {
        if distinct.len() < MOST_TOLD && !distinct.contains(&refusal) {
            distinct.push(refusal);
        }
    }
    distinct
}
