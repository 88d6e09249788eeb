//! Run summary for `runs show`: what the history of a run and its journal say about the whole run, and about a call in
//! words. `show` renders it.

use jiff::Timestamp;

use super::approval::{by_way_of, marked};
use super::approval_scope::reach;
use super::usage::MissingUsage;
use crate::core::run::{
    AttemptEnd, Authorization, CallHistory, CallVerdict, DecisionKind, ElicitationAnswer, Ending, Event, History,
    JournalEntry, Rejection, Trigger,
};
use crate::core::tool::{ElicitationRequest, LeftOut, TaskHandle, escape_untrusted};

#[derive(Debug)]
pub(in crate::cli) struct RunSummary<'a> {
    journal: &'a [JournalEntry],
    pub(super) history: History<'a>,
    /// Whether the text of models is typeset as Markdown.
    pub(super) typesets: bool,
}

/// The reason why a server suspended a call.
#[derive(Debug)]
pub(super) enum Pause<'a> {
    /// The server asked questions.
    Asked {
        /// The questions by key.
        needed: &'a ElicitationRequest,
        /// What a person answered, if it is known.
        given: Option<&'a ElicitationAnswer>,
    },
    /// The call runs, or ran, as a task at the server.
    Task(&'a TaskHandle),
}

impl<'a> RunSummary<'a> {
    /// Summarizes a journal; `None` if it does not begin with `Started`.
    pub(in crate::cli) fn from_journal(journal: &'a [JournalEntry]) -> Option<Self> {
        Some(Self { journal, history: History::from_journal(journal)?, typesets: false })
    }

    /// Typesets the text of models.
    pub(in crate::cli) fn typesetting(self) -> Self {
        Self { typesets: true, ..self }
    }

    /// The times of the first and the last event.
    pub(super) fn times(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.journal.first()?.at, self.journal.last()?.at))
    }

    /// The source of a fork or a retry, or the schedule.
    pub(super) fn origin(&self) -> Option<String> {
        match &self.history.started.trigger {
            Trigger::Manual | Trigger::Api | Trigger::Compaction => None,
            Trigger::Schedule { name } => Some(format!("started by the schedule {}", escape_untrusted(name))),
            Trigger::Fork { run, at, .. } => Some(format!("fork of {run} at event {at}")),
            Trigger::Retry { run, at, .. } => Some(format!("retry of {run} at event {at}")),
        }
    }

    /// The number of executions.
    pub(super) fn executions(&self) -> usize {
        self.journal.iter().filter(|entry| entry.event.trace().is_some()).count()
    }

    /// The tools that were left out of the latest toolset.
    pub(super) fn left_out(&self) -> &'a [LeftOut] {
        let listed = self.journal.iter().rev().find_map(|entry| {
            if let Event::ToolsListed { toolset } = &entry.event { Some(toolset.left_out()) } else { None }
        });
        listed.unwrap_or_default()
    }

    /// The text of the reply that a cancellation stopped.
    pub(super) fn partial_reply(&self) -> Option<&'a str> {
        self.journal.iter().find_map(|entry| {
            let (Event::CompensationStarted { ending, .. } | Event::Ended { ending }) = &entry.event else {
                return None;
            };
            if let Ending::Cancelled { partial_reply, .. } = ending { partial_reply.as_deref() } else { None }
        })
    }

    /// The messages that were added after so many turns had begun.
    pub(super) fn messages_after(&self, turns: usize) -> impl Iterator<Item = String> {
        let added = self.journal.iter().filter_map(|entry| {
            if let Event::MessageAdded { message } = &entry.event { Some((entry.seq, message.text())) } else { None }
        });
        added.filter(move |(seq, _)| self.turns_before(*seq) == turns).map(|(_, text)| text)
    }

    fn turns_before(&self, seq: u64) -> usize {
        let began = |first: u64| first < seq;
        self.history.turns.partition_point(|turn| turn.attempts.first().is_some_and(|first| began(first.seq)))
    }

    /// Usage that attempts did not report. The totals of a fork cover only its own part.
    pub(super) fn gaps(&self) -> MissingUsage {
        let copied = self.history.started.trigger.copied();
        let attempts = self.history.turns.iter().flat_map(|turn| &turn.attempts);
        let mut gaps = MissingUsage::default();
        for (_, end) in attempts.filter(|attempt| attempt.seq >= copied).filter_map(|attempt| attempt.end) {
            match end {
                AttemptEnd::Replied(reply) => gaps.replied(&reply.usage),
                AttemptEnd::Failed { usage, .. } => gaps.failed(usage),
            }
        }
        gaps
    }
}

/// The suspensions of a call by its server, in order.
pub(super) fn pauses<'a>(call: &CallHistory<'a>) -> Vec<Pause<'a>> {
    let mut pauses: Vec<Pause<'a>> = Vec::new();
    for entry in &call.entries {
        if let Event::InputRequested { needed, .. } | Event::InputRequired { needed, .. } = &entry.event {
            // Questions of a held call that became pending appear once.
            pauses.pop_if(|last| matches!(last, Pause::Asked { given: None, .. }));
            pauses.push(Pause::Asked { needed, given: None });
        }
        if let Event::InputGiven { given: answer, .. } = &entry.event
            && let Some(Pause::Asked { given, .. }) = pauses.last_mut()
        {
            *given = Some(answer);
        }
        if let Event::TaskStarted { task, .. } = &entry.event {
            pauses.push(Pause::Task(task));
        }
    }
    pauses
}

/// The verdict about a call in a few words: who or what cleared or rejected it.
pub(super) fn verdict_words(call: &CallHistory<'_>) -> String {
    if let Some(decision) = call.decision() {
        let word = match decision.answer {
            DecisionKind::Approve => "approved",
            DecisionKind::Deny => "denied",
        };
        let reach = reach(decision.scope, &decision.coverage, decision.expires_at);
        let edited = if decision.edited_arguments.is_some() { ", edited" } else { "" };
        let policy = decision.binding.as_ref().and_then(|binding| binding.policy.as_ref());
        let policy = policy.map(|policy| format!(", {}", marked(policy))).unwrap_or_default();
        return format!(
            "{word}{reach} by {} {}{edited}{policy}",
            escape_untrusted(&decision.by),
            by_way_of(decision.via)
        );
    }
    match call.verdict() {
        None if call.is_deferred() => "deferred".into(),
        None => "not checked yet".into(),
        _ if call.is_expired() => "not answered in time".into(),
        Some(CallVerdict::Run { by: Authorization::Grant { grant } }) => format!("auto-approved, {grant}"),
        Some(CallVerdict::Run { by: Authorization::Policy { rule: Some(rule), .. } }) => {
            format!("allowed, rule {rule}")
        }
        Some(CallVerdict::Run { by: Authorization::Policy { rule: None, .. } }) => "allowed".into(),
        Some(CallVerdict::Run { by: Authorization::HumanApproval }) => "approved".into(),
        Some(CallVerdict::Ask { .. }) => "requires approval".into(),
        Some(CallVerdict::Rejected { reason: Rejection::Deferred, .. }) => "deferred".into(),
        Some(CallVerdict::Rejected { reason, .. }) => format!("rejected, {}", reason.as_str().replace('_', " ")),
    }
}

/// The milliseconds between two events.
pub(super) fn elapsed_ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
