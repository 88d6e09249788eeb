//! Run state: the fold of a journal, and its queries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::attempts::Attempts;
use super::compaction::Compactions;
use super::compensation::Compensating;
use super::pause::Pauses;
use super::replies::Replies;
use super::transcript::say;
use super::turn::{Call, CallState, Turn};
use super::{
    Binding, Budget, Decision, ElicitationAnswer, Ending, HumanAnswer, Limit, Output, PendingItem, Started, Status,
    Step, ToolAccess, ToolGrant,
};
use crate::blob::BlobHandle;
use crate::chat::{Message, Part, Reply, Stop};
use crate::error::Failure;
use crate::id::{CallId, GrantId, ModelName, ServerId};
use crate::json;
use crate::policy::{Judgement, Subject};
use crate::tool::{Arguments, Origin, Outcome, Pins, TaskHandle, Tool, Toolset};
use crate::trace::{SpanContext, Trace};

/// A run, folded from its journal. Built by [`Run::replay`], advanced by [`Run::apply`], queried by [`Run::next`].
#[derive(Clone, Debug)]
pub struct Run {
    pub(super) length: u64,
    /// When the first event was written, if that is known.
    pub(super) began: Option<Timestamp>,
    /// When the latest event was written, if that is known.
    pub(super) clock: Option<Timestamp>,
    pub(super) started: Arc<Started>,
    pub(super) execution: (u64, Trace),
    pub(super) tools: Option<Arc<Toolset>>,
    /// Those of the tools that the model sees.
    pub(super) shown_tools: Arc<Toolset>,
    /// The definition of each tool when the run first listed it.
    pub(super) pins: Arc<Pins>,
    pub(super) granted: Arc<Vec<ToolGrant>>,
    pub(super) transcript: Vec<Arc<Message>>,
    pub(super) inbox: Vec<Message>,
    /// The messages of the user at the end of the transcript, which have no reply.
    pub(super) unanswered: Vec<Message>,
    pub(super) budget: Budget,
    pub(super) correction: Option<Correction>,
    pub(super) calls_seen: BTreeSet<CallId>,
    pub(super) external_results: BTreeMap<CallId, Arc<Outcome>>,
    pub(super) decisions: BTreeMap<CallId, Decision>,
    /// The calls that were not answered in time.
    pub(super) expired: BTreeSet<CallId>,
    pub(super) question_answers: BTreeMap<CallId, HumanAnswer>,
    pub(super) inputs_given: BTreeMap<CallId, ElicitationAnswer>,
    /// The blobs that replies and results of this run name, and those of its files. Handles in other texts do not count.
    pub(super) blobs: BTreeSet<BlobHandle>,
    /// Whether a result was too large to be shown in full.
    pub(super) has_cut_results: bool,
    pub(super) denials: BTreeMap<String, u32>,
    pub(super) denied: Option<String>,
    /// The failure because a required server was not available.
    pub(super) missing_server: Option<Failure>,
    /// The error of a call, or of the stop condition, that ends the run.
    pub(super) tool_error: Option<Failure>,
    /// The abandoned models, and when their cooldown ends.
    pub(super) cooling: BTreeMap<ModelName, Timestamp>,
    /// The content beside the calls that the model made although no tools were available to its final reply.
    pub(super) last_word: Option<Output>,
    /// Whether the stop condition of the agent held after a turn.
    pub(super) stopped: bool,
    /// Whether the transcript says that the tool budget is used up.
    pub(super) exhaustion_noted: bool,
    /// The limit that refused the next model call, and the reason.
    pub(super) refused: Option<(Limit, String)>,
    /// Whether the run continues after a pause at a limit that was not raised.
    pub(super) answers_at_limit: bool,
    pub(super) pauses: Pauses,
    pub(super) replies: Replies,
    /// The compactions of its conversation.
    pub(super) compactions: Compactions,
    pub(super) compensating: Compensating,
    pub(super) phase: Phase,
}

/// The phase of a run.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// Between turns. `resolved`: the grants for the coming turn are loaded.
    Ready { resolved: bool },
    /// The model was called and has not replied.
    Asking(Attempts),
    /// A model was called for a summary, and there is none yet.
    Compacting(Compacting),
    /// An attempt at the model failed.
    Retrying { attempts: Attempts, error: Failure },
    /// The model replied without calls.
    Validating { answer: Output, stop: Stop, tool_access: ToolAccess },
    /// The answer is valid.
    Accepted { output: Output },
    /// The calls of a turn are in progress.
    Working { turn: Turn, tool_access: ToolAccess },
    /// The run is over.
    Ended(Ending),
}

/// A compaction in progress.
#[derive(Clone, Debug)]
pub(super) struct Compacting {
    /// The number of attempts; those before the last one ended with their process.
    pub(super) attempts: u32,
    /// The position of the event that began this attempt.
    pub(super) seq: u64,
    /// The number of messages at the end that are kept.
    pub(super) keeps: u64,
    /// The phase to which a failure returns.
    pub(super) before: Box<Phase>,
}

/// The model's last error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Correction {
    Calls,
    Answer,
    EmptyAnswer,
}

impl Phase {
    /// The open turn, while its calls are in progress.
    pub(super) fn turn(&self) -> Option<&Turn> {
        if let Self::Working { turn, .. } = self { Some(turn) } else { None }
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut Turn> {
        if let Self::Working { turn, .. } = self { Some(turn) } else { None }
    }

    /// The calls of the open turn.
    pub(super) fn calls(&self) -> &[Call] {
        self.turn().map_or(&[], |turn| &turn.calls)
    }

    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Ready { .. } => "between turns",
            Self::Asking(_) => "asking the model",
            Self::Compacting(_) => "compacting the conversation",
            Self::Retrying { .. } => "between attempts at the model",
            Self::Validating { .. } => "looking at an answer",
            Self::Accepted { .. } => "about to complete",
            Self::Working { .. } => "working on tool calls",
            Self::Ended(_) => "over",
        }
    }
}

impl Run {
    /// The number of events in the journal.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// When the latest event was written, if that is known.
    pub fn clock(&self) -> Option<Timestamp> {
        self.clock
    }

    /// The first event. Its limits are those that hold now: a fork's own, or those with which a paused run was continued.
    pub fn started(&self) -> &Arc<Started> {
        &self.started
    }

    /// The current toolset, once tools were listed.
    pub fn tools(&self) -> Option<&Arc<Toolset>> {
        self.tools.as_ref()
    }

    /// The hash of each tool's definition when the run first listed it.
    pub fn pins(&self) -> &Arc<Pins> {
        &self.pins
    }

    /// The usage of the run's limits.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The conversation as models read it, as far as every call in it has its result: always acceptable to a provider
    /// (law 5).
    pub fn transcript(&self) -> &[Arc<Message>] {
        &self.transcript
    }

    /// The conversation as people read it, with the open turn: its assistant message and the available results. A
    /// caller with required actions sees this.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        let mut messages = self.conversation().to_vec();
        if let Some(turn) = self.phase.turn().filter(|_| !self.is_compensating()) {
            let mode = self.started.spec.rules.tiers;
            say(&mut messages, turn.assistant_message(mode));
            say(&mut messages, turn.results(mode));
        }
        messages
    }

    /// The ending, if the run is over.
    pub fn ending(&self) -> Option<&Ending> {
        if let Phase::Ended(ending) = &self.phase { Some(ending) } else { None }
    }

    /// The status of the run.
    pub fn status(&self) -> Status {
        match self.ending() {
            Some(ending) => ending.status(),
            None if self.waits() => Status::Pending,
            None => Status::Running,
        }
    }

    /// Whether the run waits for input from outside and has no step in flight.
    pub fn waits(&self) -> bool {
        matches!(self.next(), Step::Wait(_)) && !self.is_pause_delayed()
    }

    /// The pending items of the run; empty unless its status is pending.
    pub fn pending(&self) -> Vec<PendingItem> {
        if self.is_pause_delayed() {
            return Vec::new();
        }
        if let Step::Wait(items) = self.next() { items } else { Vec::new() }
    }

    /// The items that the user or the caller can answer now: all pending items, or, while the run is executing, its
    /// pause and the questions on calls that are held open.
    pub fn open_items(&self) -> Vec<PendingItem> {
        let pending = self.pending();
        match pending.is_empty() {
            false => pending,
            true => self.pending_items().into_iter().filter(PendingItem::is_answered_in_flight).collect(),
        }
    }

    /// The number of calls of the open turn.
    pub fn calls_in_turn(&self) -> usize {
        self.phase.calls().len()
    }

    /// A call of the open turn.
    pub fn call(&self, id: &CallId) -> Option<&Call> {
        self.phase.calls().iter().find(|call| call.requested.id == *id)
    }

    /// The blobs of this run: those named in its models' replies and its calls' results, and those of the uploaded files that
    /// it began with. Other mentions of a blob, in text or in messages from outside, give no access to its content.
    pub fn blobs(&self) -> &BTreeSet<BlobHandle> {
        &self.blobs
    }

    /// Whether a result was too large to be shown in full, so that there is more to read.
    pub fn has_cut_results(&self) -> bool {
        self.has_cut_results
    }

    /// The calls of the open turn that run as tasks at their servers, and wait for nothing else.
    pub fn tasks(&self) -> impl Iterator<Item = (&CallId, &Origin, &TaskHandle)> {
        self.phase.calls().iter().filter_map(|call| match (&call.state, &call.tool) {
            (CallState::Task(task), Some(tool)) => Some((&call.requested.id, &tool.origin, &**task)),
            _ => None,
        })
    }

    /// The grant that [covers](ToolGrant::covers) a call of a tool with these arguments at that time, if there is one.
    pub fn granted(&self, tool: &Tool, arguments: &Arguments, at: Timestamp, judged: &Judgement) -> Option<&GrantId> {
        let subject = self.subject(tool, arguments);
        let covers =
            |granted: &&ToolGrant| granted.tool == tool.name && granted.covers(&subject, arguments, Some(at), judged);
        self.granted.iter().find(covers).map(|granted| &granted.grant)
    }

    /// The call of a tool with these arguments, as policies and the conditions of grants see it.
    pub(super) fn subject<'a>(&'a self, tool: &'a Tool, arguments: &'a Arguments) -> Subject<'a> {
        let (agent, principal) = (Some(&self.started.spec.agent), self.started.spec.principal.as_ref());
        Subject { tool, agent, principal, arguments: arguments.as_object() }
    }

    /// The content that a decision about a call is bound to. `None` unless it waits for a decision.
    pub fn binding(&self, id: &CallId, edited: Option<&Arguments>) -> Option<Binding> {
        let call = self.call(id)?;
        let (CallState::Asked { policy, .. }, Some(tool)) = (&call.state, &call.tool) else { return None };
        // What the approver saw; a call that differs in any of it requires approval again (decision 0010).
        Some(Binding {
            origin: tool.origin.clone(),
            definition: tool.hash.clone(),
            arguments: edited.unwrap_or_else(|| call.arguments()).hash(),
            policy: policy.clone(),
            event: call.deadline.event,
        })
    }

    /// The latest decision about a call.
    pub fn decision(&self, id: &CallId) -> Option<&Decision> {
        self.decisions.get(id)
    }

    /// The calls that wait for a decision: those whose question has at most that position, or all.
    pub fn undecided(&self, up_to: Option<u64>) -> Vec<CallId> {
        let asked = self.phase.calls().iter().filter(|call| matches!(call.state, CallState::Asked { .. }));
        let asked = asked.filter(|call| up_to.is_none_or(|event| call.deadline.event <= event));
        asked.map(|call| call.requested.id.clone()).collect()
    }

    /// Whether the run is between turns, where the toolset may change.
    pub fn is_between_turns(&self) -> bool {
        matches!(self.phase, Phase::Ready { .. })
    }

    /// The trace of the current execution, and the position of the event that began it.
    pub fn execution(&self) -> (u64, &Trace) {
        (self.execution.0, &self.execution.1)
    }

    /// The trace context of the execution's span.
    pub fn execution_context(&self) -> SpanContext {
        self.execution.1.context(&super::labels::execution(self.execution.0))
    }

    /// The trace context of listing the tools of a server. The first listing has a span for each server; later the servers
    /// are asked whenever the tools may have changed, and mostly they have not.
    pub fn listing_context(&self, server: &ServerId) -> SpanContext {
        match &self.tools {
            None => self.execution.1.context(&super::labels::listing(self.execution.0, server)),
            Some(_) => self.execution_context(),
        }
    }

    /// The trace context of the current model call, once it is journaled as started.
    pub fn model_context(&self) -> SpanContext {
        match self.attempts() {
            Some(attempts) => self.execution.1.context(&super::labels::model_call(attempts.first)),
            None => self.execution_context(),
        }
    }

    /// The trace context of a call's span.
    pub fn call_context(&self, call: &CallId) -> SpanContext {
        let round = self.call(call).map_or(0, |call| call.round);
        self.execution.1.context(&super::labels::tool_call(call, round))
    }

    /// The reply with ids that are unique in this run: providers repeat ids from turn to turn, or omit them. Ids go
    /// into logs, terminals and the traffic with servers, so an id with an unusual form is replaced too.
    pub fn with_unique_ids(&self, mut reply: Reply) -> Reply {
        let mut taken: BTreeSet<CallId> = BTreeSet::new();
        for (index, part) in reply.content.iter_mut().enumerate() {
            let Part::ToolUse { id, .. } = part else { continue };
            let mut is_refused = !is_usable(id);
            let stem = if is_refused { "call".to_owned() } else { id.to_string() };
            let mut turn = self.budget.iterations + 1;
            while is_refused || self.calls_seen.contains(id) || taken.contains(id) {
                is_refused = false;
                *id = CallId::from(format!("{stem}_{turn}_{index}"));
                turn += 1;
            }
            taken.insert(id.clone());
        }
        reply
    }

    /// The key by which denials of a call are counted: the same tool with the same arguments.
    pub(super) fn denial_key(call: &Call) -> String {
        let tool = call.tool.as_ref().map_or(call.requested.name.as_str(), |tool: &Arc<Tool>| tool.name.as_str());
        format!("{tool} {}", json::hash(&call.requested.arguments.to_value()))
    }
}

/// The maximum length of a usable id; a suffix that makes an id unique fits beyond it.
const LONGEST_ID: usize = 256;

fn is_usable(id: &CallId) -> bool {
    let id = id.as_str();
    !id.is_empty() && id.len() <= LONGEST_ID && !id.contains(char::is_control)
}
