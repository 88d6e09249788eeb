//! History of a run: what became of each turn, of each attempt at the model, and of each call.
//!
//! [`Run`](super::Run) is the state after a journal, and forgets the calls of a turn once the turn is closed. A history
//! groups the journal's entries by what they are about, in their order and with their times. It judges nothing and
//! cannot fail: replay a journal to know whether it is valid.

use std::sync::Arc;

use jiff::Timestamp;

use super::{CallVerdict, Decision, Event, JournalEntry, OutputVerdict, Started, ToolAccess, ToolGrant};
use crate::chat::{Reply, Usage};
use crate::error::Failure;
use crate::id::{CallId, ModelName};
use crate::tool::{Arguments, Outcome, Tool, ToolCall, ToolOutput, Toolset};

/// The history of a run.
#[derive(Clone, Debug)]
pub struct History<'a> {
    /// The first event.
    pub started: &'a Arc<Started>,
    /// The turns. A turn that a fork begins again is a turn of its own.
    pub turns: Vec<TurnHistory<'a>>,
    /// The calls that undo others before the run ends, in their order.
    pub undos: Vec<CallHistory<'a>>,
}

/// The history of a turn.
#[derive(Clone, Debug)]
pub struct TurnHistory<'a> {
    pub tools: Option<&'a Arc<Toolset>>,
    /// The grants for the guarded tools.
    pub granted: &'a [ToolGrant],
    /// The attempts at the model; at least one.
    pub attempts: Vec<AttemptHistory<'a>>,
    /// The priority of the calls that were selected last.
    pub priority: Option<i32>,
    /// The calls of the reply.
    pub calls: Vec<CallHistory<'a>>,
    /// The result of checking the answer.
    pub verdict: Option<&'a OutputVerdict>,
}

/// The history of an attempt at the model.
#[derive(Clone, Debug)]
pub struct AttemptHistory<'a> {
    /// The position of the event that began it.
    pub seq: u64,
    /// When the model was called.
    pub at: Timestamp,
    pub model: &'a ModelName,
    /// Whether the model could call tools.
    pub tool_access: ToolAccess,
    /// When and how it ended; `None` while it is in progress, or if its process died.
    pub end: Option<(Timestamp, AttemptEnd<'a>)>,
}

/// The end of an attempt at the model.
#[derive(Clone, Copy, Debug)]
pub enum AttemptEnd<'a> {
    Replied(&'a Reply),
    Failed { error: &'a Failure, usage: &'a Usage },
}

/// The history of a call.
#[derive(Clone, Debug)]
pub struct CallHistory<'a> {
    pub requested: ToolCall,
    /// The tool as listed when the model requested the call; `None` if there is no such tool.
    listed: Option<&'a Arc<Tool>>,
    /// The journal entries about the call.
    pub entries: Vec<&'a JournalEntry>,
}

impl<'a> History<'a> {
    /// The history in a journal; `None` if the journal does not begin with `execution.started`.
    pub fn from_journal(journal: &'a [JournalEntry]) -> Option<Self> {
        let Event::Started(started) = &journal.first()?.event else { return None };
        let mut history = Self { started, turns: Vec::new(), undos: Vec::new() };
        let (mut tools, mut granted): (_, &[ToolGrant]) = (None, &[]);
        for entry in journal {
            if let Event::ToolsListed { toolset } = &entry.event {
                (tools, granted) = (Some(toolset), &[]);
            }
            if let Event::ApprovalsResolved { granted: resolved } = &entry.event {
                granted = resolved;
            }
            if let Event::ModelCalled { model, attempt, tool_access } = &entry.event {
                let again = history.turns.last().is_some_and(|turn| *attempt > 1 && turn.reply().is_none());
                if !again {
                    history.turns.push(TurnHistory::new(tools, granted));
                }
                let attempt =
                    AttemptHistory { seq: entry.seq, at: entry.at, model, tool_access: *tool_access, end: None };
                history.turns.last_mut().into_iter().for_each(|turn| turn.attempts.push(attempt.clone()));
            }
            if let Some(turn) = history.turns.last_mut() {
                turn.add(entry);
            }
            if let Event::CompensationStarted { undo, .. } = &entry.event {
                history.undos = undo.iter().map(|undo| CallHistory::new(undo.call.clone(), tools)).collect();
            }
            note(&mut history.undos, entry);
        }
        Some(history)
    }

    /// The calls of all turns, and the undo calls.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &CallHistory<'a>> {
        self.turns.iter().flat_map(|turn| &turn.calls).chain(&self.undos)
    }

    /// The call with that id.
    pub fn call(&self, id: &CallId) -> Option<&CallHistory<'a>> {
        self.calls().rfind(|call| call.requested.id == *id)
    }
}

impl<'a> TurnHistory<'a> {
    fn new(tools: Option<&'a Arc<Toolset>>, granted: &'a [ToolGrant]) -> Self {
        Self { tools, granted, attempts: Vec::new(), priority: None, calls: Vec::new(), verdict: None }
    }

    /// The reply of the model, with its time.
    pub fn reply(&self) -> Option<(Timestamp, &'a Reply)> {
        let (at, end) = self.attempts.last()?.end?;
        if let AttemptEnd::Replied(reply) = end { Some((at, reply)) } else { None }
    }

    fn add(&mut self, entry: &'a JournalEntry) {
        let event = &entry.event;
        if let Event::ModelReplied { reply } = event {
            self.end_attempt(entry.at, AttemptEnd::Replied(reply));
            self.calls = reply.calls().map(|requested| CallHistory::new(requested, self.tools)).collect();
        }
        if let Event::ModelFailed { error, usage, .. } = event {
            self.end_attempt(entry.at, AttemptEnd::Failed { error, usage });
        }
        if let Event::OutputValidated { verdict } = event {
            self.verdict = Some(verdict);
        }
        if let Event::TierSelected { priority, .. } = event {
            self.priority = Some(*priority);
        }
        note(&mut self.calls, entry);
    }

    fn end_attempt(&mut self, at: Timestamp, end: AttemptEnd<'a>) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.end = Some((at, end));
        }
    }
}

impl AttemptEnd<'_> {
    /// The usage of the attempt.
    pub fn usage(&self) -> &Usage {
        match self {
            Self::Replied(reply) => &reply.usage,
            Self::Failed { usage, .. } => usage,
        }
    }
}

/// Adds an entry to the calls that it is about.
fn note<'a>(calls: &mut [CallHistory<'a>], entry: &'a JournalEntry) {
    for call in calls.iter_mut().filter(|call| entry.event.calls().any(|id| *id == call.requested.id)) {
        call.entries.push(entry);
    }
}

impl<'a> CallHistory<'a> {
    fn new(requested: ToolCall, tools: Option<&'a Arc<Toolset>>) -> Self {
        Self { listed: tools.and_then(|tools| tools.get(&requested.name)), requested, entries: Vec::new() }
    }

    /// The history up to that position, without it.
    #[must_use]
    pub fn before(&self, seq: u64) -> Self {
        Self { entries: self.entries.iter().copied().filter(|entry| entry.seq < seq).collect(), ..self.clone() }
    }

    /// The tool, as defined when the model requested the call, or when the call was last compared with it.
    pub fn tool(&self) -> Option<&'a Arc<Tool>> {
        let drifted = |entry: &'a JournalEntry| {
            if let Event::CallDrifted { tool, .. } = &entry.event { tool.as_ref() } else { None }
        };
        self.latest(drifted).or(self.listed)
    }

    /// The latest decision that edited the arguments. An edit stays in effect if the call requires approval again.
    pub fn edit(&self) -> Option<&'a Decision> {
        self.latest(|entry| decision_in(entry).filter(|decision| decision.edited_arguments.is_some()))
    }

    /// The arguments with which the call was, or would be, sent.
    pub fn arguments(&self) -> &Arguments {
        self.edit().and_then(|edit| edit.edited_arguments.as_ref()).unwrap_or(&self.requested.arguments)
    }

    /// Whether calls of higher priority ran first.
    pub fn is_deferred(&self) -> bool {
        let selected = |entry: &'a JournalEntry| {
            if let Event::TierSelected { deferred, .. } = &entry.event { Some(deferred) } else { None }
        };
        self.latest(selected).is_some_and(|deferred| deferred.contains(&self.requested.id))
    }

    /// The latest verdict. A call that changed since then has none.
    pub fn verdict(&self) -> Option<&'a CallVerdict> {
        self.since_drift()
            .find_map(|entry| if let Event::CallChecked { verdict, .. } = &entry.event { Some(verdict) } else { None })
    }

    /// The latest decision. A call that changed since then has none.
    pub fn decision(&self) -> Option<&'a Decision> {
        self.since_drift().find_map(decision_in)
    }

    /// Whether a pending item of the call expired.
    pub fn is_expired(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.event, Event::Expired { .. }))
    }

    /// When it was last sent.
    pub fn sent_at(&self) -> Option<Timestamp> {
        self.latest(|entry| matches!(entry.event, Event::CallsStarted { .. }).then_some(entry.at))
    }

    /// The outcome, with its time.
    pub fn outcome(&self) -> Option<(Timestamp, Arc<Outcome>)> {
        self.latest(|entry| {
            if let Event::QuestionAnswered { answer, .. } = &entry.event {
                let answered = Outcome::Returned(ToolOutput::text(answer.choice.to_words()));
                return Some((entry.at, answered.into()));
            }
            let Event::CallCompleted { outcome, .. } = &entry.event else { return None };
            Some((entry.at, outcome.clone()))
        })
    }

    fn latest<T>(&self, of: impl Fn(&'a JournalEntry) -> Option<T>) -> Option<T> {
        self.entries.iter().rev().find_map(|entry| of(entry))
    }

    /// The entries since the call was last found changed, latest first.
    fn since_drift(&self) -> impl Iterator<Item = &'a JournalEntry> {
        let latest = self.entries.iter().rev().copied();
        latest.take_while(|entry| !matches!(entry.event, Event::CallDrifted { .. }))
    }
}

fn decision_in(entry: &JournalEntry) -> Option<&Decision> {
    if let Event::ApprovalDecided { decision, .. } = &entry.event { Some(decision) } else { None }
}
