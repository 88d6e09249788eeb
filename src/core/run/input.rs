//! Input from outside for a run: answers to pending items, messages, a cancellation. It is checked against the pending items
//! before anything is written; a refused input consumes nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::answer::Novelty;
use super::state::Phase;
use super::{Answer, Channel, Decision, Ending, Event, PendingItem, Run};
use crate::core::chat::Message;
use crate::core::id::CallId;
use crate::core::tool::result::shortened;

/// The maximum number of reasons reported for a refused input.
const MOST_TOLD: usize = 100;

/// An input for a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Answers to pending items.
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

/// Answers to pending items, addressed by call id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resume {
    /// The answers. A call may be answered once.
    pub answers: Vec<(CallId, Answer)>,
    /// Whether items may stay pending.
    pub partial: bool,
    /// The journal length that the sender saw; any other length is refused.
    pub expected_version: Option<u64>,
}

impl Resume {
    /// Adds an answer.
    #[must_use]
    pub fn with(mut self, call: impl Into<CallId>, answer: impl Into<Answer>) -> Self {
        self.answers.push((call.into(), answer.into()));
        self
    }

    /// The same answers, which may leave other items pending.
    #[must_use]
    pub fn partial(self) -> Self {
        Self { partial: true, ..self }
    }

    /// The decisions, with their calls.
    pub fn decisions(&self) -> impl Iterator<Item = (&CallId, &Decision)> {
        self.answers.iter().filter_map(|(call, answer)| Some((call, answer.decision()?)))
    }
}

impl<C: Into<CallId>, A: Into<Answer>> FromIterator<(C, A)> for Resume {
    fn from_iter<I: IntoIterator<Item = (C, A)>>(answers: I) -> Self {
        let answers = answers.into_iter().map(|(call, answer)| (call.into(), answer.into()));
        Self { answers: answers.collect(), ..Self::default() }
    }
}

/// The reason why an input was refused. No part of it was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum ResumeError {
    /// The run has no such call.
    #[error("call `{call_id}` is not a call of this run that waits; `toolgate runs show` lists what is pending")]
    UnknownCall {
        /// The id that was given.
        call_id: CallId,
    },
    /// The call is settled already, with a different answer.
    #[error("call `{call_id}` is settled already, with a different answer")]
    AlreadySettled {
        /// The call.
        call_id: CallId,
    },
    /// A result for an item that waits for a decision, or the other way round.
    #[error("call `{call_id}` waits for {owed}, not for {given}")]
    WrongKind {
        /// The call.
        call_id: CallId,
        /// The expected kind.
        owed: String,
        /// The given kind.
        given: String,
    },
    /// The same call is answered twice.
    #[error("call `{call_id}` is answered twice in one request")]
    Duplicate {
        /// The call.
        call_id: CallId,
    },
    /// The call is not what was shown to the approver.
    #[error("call `{call_id}` changed since it was shown; review it and decide again")]
    Drifted {
        /// The call.
        call_id: CallId,
    },
    /// The answer came too late.
    #[error(
        "call `{call_id}` was not answered in time, and accepts no answer any more; `toolgate resume RUN` (or \
         `toolgate approvals expire`) resumes a run that still waits for it, and its model reads that there was no answer"
    )]
    TooLate {
        /// The call.
        call_id: CallId,
    },
    /// Answers that would send a call a second time, without explicit consent to that.
    #[error(
        "call `{call_id}` had begun when its server asked, and was cancelled: with answers it is sent a second time, and \
         whatever it did may be done twice; confirm that with `--repeat {call_id}` (`\"repeat\": true` beside the answers), or \
         decline, and the model reads that the outcome is unknown"
    )]
    RepeatUnconfirmed {
        /// The call.
        call_id: CallId,
    },
    /// An extension that does not extend the deadline.
    #[error("call `{call_id}` has time until {until} already; give a later time")]
    NotLater {
        /// The call.
        call_id: CallId,
        /// The current deadline.
        until: Timestamp,
    },
    /// An extension for an item without a deadline.
    #[error("call `{call_id}` has no deadline; there is time for it as long as the run lives")]
    NoDeadline {
        /// The call.
        call_id: CallId,
    },
    /// An extension to a time in the past.
    #[error("the deadline {until} for call `{call_id}` has passed; give a later time")]
    InThePast {
        /// The call.
        call_id: CallId,
        /// The given deadline.
        until: Timestamp,
    },
    /// A request that is not partial leaves items pending.
    #[error("these calls are pending too: {}; answer all of them, or make the resume partial", list(missing))]
    Incomplete {
        /// The calls without an answer.
        missing: Vec<CallId>,
    },
    /// The input does not match the request, or is too large for any run.
    #[error("{what} of call `{call_id}` {problems}")]
    Invalid {
        /// The call.
        call_id: CallId,
        /// The part, in words, such as `the result`.
        what: String,
        /// The first invalid location in it, as a JSON Pointer; empty for the whole.
        at: String,
        /// The problems.
        problems: String,
    },
    /// The journal has more events than the sender saw.
    #[error("the run is at version {actual}, not {expected}, and is {status}")]
    VersionConflict {
        /// The version the sender saw.
        expected: u64,
        /// The current version.
        actual: u64,
        /// The current status.
        status: String,
    },
    /// The run is over.
    #[error("the run is over: {status}")]
    RunEnded {
        /// The status.
        status: String,
    },
    /// The input is larger than a run accepts.
    #[error("{what} has more than {most} bytes; say it with less, or raise `max_result_bytes`")]
    Oversized {
        /// The input, in words, such as `the message`.
        what: String,
        /// The maximum size.
        most: usize,
    },
    /// A message without words.
    #[error("a message needs text")]
    EmptyMessage,
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
        let pending = self.pending_items();
        let (mut refusals, mut twice, mut answered, mut is_new) = (Vec::new(), Vec::new(), BTreeSet::new(), false);
        for (call, answer) in &resume.answers {
            match self.novelty(&pending, call, answer) {
                Ok(Novelty::New) => is_new = true,
                Ok(Novelty::Repeated) => {}
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
        let pending = self.pending_items();
        let (mut events, mut refusals) = (Vec::new(), Vec::new());
        for (call, answer) in resume.answers.iter().filter(|(call, answer)| answer.settles(call, &pending)) {
            match self.settled_by(call, answer, resume.expected_version) {
                Ok(event) => events.extend(event),
                Err(refusal) => refusals.push(refusal),
            }
        }
        if refusals.is_empty() && !events.is_empty() && !resume.partial {
            let answered: BTreeSet<&CallId> = resume.answers.iter().map(|(call, _)| call).collect();
            let wanting = pending.iter().filter(|item| item.wants_answer());
            let missing = wanting.map(PendingItem::call_id).filter(|id| !answered.contains(id));
            let missing: Vec<CallId> = missing.cloned().collect();
            if !missing.is_empty() {
                refusals.push(ResumeError::Incomplete { missing });
            }
        }
        let refusals = distinct(refusals);
        if refusals.is_empty() { Ok(events) } else { Err(refusals) }
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

fn list(ids: &[CallId]) -> String {
    ids.iter().map(CallId::as_str).collect::<Vec<_>>().join(", ")
}
