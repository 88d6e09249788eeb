//! Input from outside for a run: answers to pending items, messages, a cancellation. It is checked against the pending items
//! before anything is written; a refused input consumes nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::answer::Novelty;
use super::state::Phase;
use super::{
    Answer, Channel, Decision, DecisionKind, Ending, Event, PendingItem, ResumeError, Run, TighterLimits, Unpause,
};
use crate::chat::Message;
use crate::id::CallId;
use crate::tool::result::shortened;

/// The maximum number of reasons reported for a refused input.
const MAX_REFUSALS: usize = 100;

/// An input for a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Answers to pending items.
    Resume(Resume),
    /// A message of the user or the application.
    Message(Message),
    /// Extends the deadline of a pending item.
    Extend {
        call: CallId,
        /// The new deadline.
        until: Timestamp,
        /// The person who extends it.
        by: String,
        /// The channel they use.
        via: Channel,
    },
    Pause {
        reason: Option<String>,
        /// The person or program that pauses it.
        by: String,
        /// The channel they use.
        via: Channel,
        /// The journal length that the sender saw; any other length is refused.
        expected_version: Option<u64>,
    },
    Cancel {
        reason: Option<String>,
        /// What the model had streamed to the process that cancels.
        partial_reply: Option<PartialReply>,
        /// The journal length that the sender saw; any other length is refused.
        expected_version: Option<u64>,
    },
}

/// The text of a reply that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialReply {
    /// The journal position of the attempt's `llm.call.started`.
    pub call: u64,
    pub text: String,
}

/// Answers to pending items, addressed by call id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resume {
    /// The answers. A call may be answered once.
    pub answers: Vec<(CallId, Answer)>,
    /// The end of the run's pause. It settles the item of the run, and no call.
    pub unpause: Option<Unpause>,
    /// Whether items may stay pending.
    pub partial: bool,
    /// The items that the sender may answer. Others may stay pending.
    pub answerable: Answerable,
    /// The journal length that the sender saw; any other length is refused.
    pub expected_version: Option<u64>,
}

/// The pending items that the sender of a resume may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answerable {
    #[default]
    All,
    /// Approvals, and nothing else.
    Approvals,
    /// Everything but approvals.
    WithoutApprovals,
}

impl Answerable {
    fn includes(self, item: &PendingItem) -> bool {
        match self {
            Self::All => true,
            Self::Approvals => matches!(item, PendingItem::Approval(_)),
            Self::WithoutApprovals => !matches!(item, PendingItem::Approval(_)),
        }
    }
}

impl Resume {
    /// A resume without answers: it continues a run that waits for nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an answer.
    #[must_use]
    pub fn with(mut self, call: impl Into<CallId>, answer: impl Into<Answer>) -> Self {
        self.answers.push((call.into(), answer.into()));
        self
    }

    /// Approves one call, once. `by` is the approver's name, for the record.
    #[must_use]
    pub fn approve(self, call: impl Into<CallId>, by: impl Into<String>) -> Self {
        self.with(call, Decision::new(DecisionKind::Approve, by))
    }

    /// Denies one call. The model reads the reason.
    #[must_use]
    pub fn deny(self, call: impl Into<CallId>, by: impl Into<String>, reason: impl Into<String>) -> Self {
        self.with(call, Decision { reason: Some(reason.into()), ..Decision::new(DecisionKind::Deny, by) })
    }

    /// Adds the result of an external call.
    #[must_use]
    pub fn output(self, call: impl Into<CallId>, output: impl Into<Value>) -> Self {
        self.with(call, Answer::output(output))
    }

    /// Adds the error of an external call. The model reads the message.
    #[must_use]
    pub fn error(self, call: impl Into<CallId>, message: impl Into<String>) -> Self {
        self.with(call, Answer::error(message))
    }

    /// The same answers, which may leave other items pending.
    #[must_use]
    pub fn partial(self) -> Self {
        Self { partial: true, ..self }
    }

    /// The same answers, which also end the run's pause.
    #[must_use]
    pub fn and_continue(mut self, by: impl Into<String>, via: Channel) -> Self {
        self.unpause = Some(Unpause { by: by.into(), via, limits: TighterLimits::default() });
        self
    }

    /// Whether it has neither answers nor the end of a pause.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.unpause.is_none()
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
            Input::Pause { reason, by, via, expected_version } => {
                self.accept_pause(by, *via, reason.as_ref(), *expected_version)
            }
            Input::Cancel { reason, partial_reply, expected_version } => match self.ending() {
                Some(Ending::Cancelled { .. }) => Ok(Vec::new()),
                Some(_) => Err(vec![self.version_conflict(*expected_version).unwrap_or_else(|| self.over())]),
                None => {
                    if let Some(stale) = self.version_conflict(*expected_version) {
                        return Err(vec![stale]);
                    }
                    // A long reason must not prevent a cancellation.
                    let most = self.started.spec.limits.result_bytes();
                    let reason = reason.as_ref().map(|reason| shortened(reason, most));
                    // A second cancellation ends the compensation, and the decided ending stays.
                    let partial_reply = partial_reply
                        .as_ref()
                        .filter(|reply| self.is_streaming(reply))
                        .map(|reply| shortened(reply.text.trim_end(), most));
                    let cancelled = Ending::Cancelled { reason, partial_reply };
                    let ending = self.decided_ending().cloned().unwrap_or(cancelled);
                    Ok(vec![self.ending_event(ending)])
                }
            },
        }
    }

    /// Whether the reply has text and belongs to the attempt in progress.
    fn is_streaming(&self, reply: &PartialReply) -> bool {
        let is_open = matches!(&self.phase, Phase::Asking(attempts) if attempts.latest == reply.call);
        is_open && !reply.text.trim().is_empty()
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
        match resume.unpause.as_ref().map(|_| self.admits_unpause()) {
            Some(Ok(ends)) => is_new |= ends,
            Some(Err(refusal)) => refusals.push(refusal),
            None => {}
        }
        // A repetition is fine at any version; an empty resume refers to the run as the sender saw it.
        if refusals.is_empty() && (is_new || resume.is_empty()) {
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
            let wanting = pending.iter().filter(|item| item.wants_answer() && resume.answerable.includes(item));
            let missing = wanting.filter_map(PendingItem::call_id).filter(|id| !answered.contains(id));
            let missing: Vec<CallId> = missing.cloned().collect();
            if !missing.is_empty() {
                refusals.push(ResumeError::Incomplete { missing });
            }
        }
        if let (Some(Unpause { by, via, limits }), Some(_)) = (&resume.unpause, self.pause()) {
            let limits = (*limits != TighterLimits::default()).then(|| self.budget.limits.with(limits).into());
            events.push(Event::Unpaused { by: by.clone(), via: *via, limits });
        }
        let refusals = distinct(refusals);
        if refusals.is_empty() { Ok(events) } else { Err(refusals) }
    }

    pub(super) fn version_conflict(&self, expected_version: Option<u64>) -> Option<ResumeError> {
        let expected = expected_version.filter(|expected| *expected != self.length)?;
        Some(ResumeError::VersionConflict { expected, actual: self.length, status: self.status().as_str().to_owned() })
    }

    /// The current pending items: the run's pause, and those of calls, including those of a turn whose other calls are
    /// still running.
    pub fn pending_items(&self) -> Vec<PendingItem> {
        let calls = self.phase.calls().iter().filter_map(PendingItem::new);
        self.pause().map(PendingItem::of_pause).into_iter().chain(calls).collect()
    }
}

/// Removes duplicates: a refusal that concerns the whole run is not repeated for each call.
fn distinct(refusals: Vec<ResumeError>) -> Vec<ResumeError> {
    let mut distinct: Vec<ResumeError> = Vec::new();
    for refusal in refusals {
        if distinct.len() < MAX_REFUSALS && !distinct.contains(&refusal) {
            distinct.push(refusal);
        }
    }
    distinct
}
