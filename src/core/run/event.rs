//! Journal events: facts in past tense, without ids or a clock of their own.

use std::slice;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    CallEstimate, CallVerdict, Channel, Decision, Ending, Limit, Limits, OutputVerdict, Segment, ServerWait, Started,
    ToolGrant, UndoCall,
};
use crate::chat::{Message, Reply, Usage};
use crate::error::Failure;
use crate::id::{CallId, ModelName};
use crate::tool::{
    Action, CallReply, CallTransport, Choice, DeliveredReply, Difference, ElicitationRequest, ElicitationResponse,
    ElicitationResponses, Outcome, Problem, TaskHandle, Tool, Toolset,
};
use crate::trace::Trace;

/// An event of the journal. In JSON its name is `type`; events that source 002 defines have the names from there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Event {
    /// The run was created. Always the first event, written before anything runs.
    #[serde(rename = "execution.started")]
    Started(Arc<Started>),
    /// A further execution of the run, in a new trace.
    #[serde(rename = "execution.resumed")]
    Resumed {
        /// The trace of this execution.
        trace: Trace,
        /// The limits of a fork or a retry, whose own budget starts here; absent in every other execution.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Box<Limits>>,
    },
    /// The execution waits for admission: as many runs are active as the configuration allows.
    #[serde(rename = "execution.queued")]
    Queued,
    /// The wait for admission is over.
    #[serde(rename = "execution.admitted")]
    Admitted,
    /// The execution waited for servers, and continues now. Waits of a few milliseconds are not recorded.
    #[serde(rename = "execution.waited")]
    Waited { waits: Vec<ServerWait> },
    /// The execution stopped in the middle: its process released the run, or died.
    #[serde(rename = "execution.interrupted")]
    Interrupted {
        /// When a process that died was last known to be alive; `None` for a process that released the run, at the time of
        /// this event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alive_at: Option<Timestamp>,
    },
    /// The tools that the model can use from now on.
    #[serde(rename = "tools.listed")]
    ToolsListed {
        /// The toolset, with the policy's verdict on each tool.
        toolset: Arc<Toolset>,
    },
    /// The approval cache returned the grants for the guarded tools, in one batch.
    #[serde(rename = "approvals.resolved")]
    ApprovalsResolved {
        /// The grants that hold in this turn.
        granted: Arc<Vec<ToolGrant>>,
    },
    /// The model is called (intent, written before the request is sent).
    #[serde(rename = "llm.call.started")]
    ModelCalled {
        model: ModelName,
        /// 1 for the first attempt of this turn, at any model.
        attempt: u32,
        /// Whether the model may call tools.
        tool_access: ToolAccess,
    },
    /// The model answered.
    #[serde(rename = "llm.call.completed")]
    ModelReplied { reply: Arc<Reply> },
    /// A model call was not made: its worst case would exceed a hard limit, or the governor refused it.
    #[serde(rename = "llm.call.refused")]
    ModelCallRefused {
        model: ModelName,
        limit: Limit,
        reason: String,
        /// The size of the call.
        estimate: CallEstimate,
    },
    /// An attempt at the model failed.
    #[serde(rename = "llm.call.failed")]
    ModelFailed {
        error: Failure,
        /// The usage of the failed attempt.
        #[serde(default)]
        usage: Usage,
        /// When the model's cooldown ends, during which other available models are preferred; `None` when it is
        /// retried, or is the only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cooldown_until: Option<Timestamp>,
    },
    /// The final answer was checked.
    #[serde(rename = "output.validated")]
    OutputValidated {
        /// The result of the check.
        verdict: OutputVerdict,
    },
    /// The calls of a reply were split into those that run now and those that are deferred.
    #[serde(rename = "tool.tier.selected")]
    TierSelected {
        /// The priority that the running calls share.
        priority: i32,
        /// The calls of this tier, in the model's order.
        run: Vec<CallId>,
        /// The calls below it.
        deferred: Vec<CallId>,
    },
    /// A call was checked: it may run, requires approval, or is rejected.
    #[serde(rename = "tool.checked")]
    CallChecked {
        call: CallId,
        /// The result of the check.
        verdict: CallVerdict,
        /// The problems of arguments that do not match the tool's schema, at a server whose validation is advisory.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        advisory: Vec<Problem>,
    },
    /// An approver decided about a call.
    #[serde(rename = "approval.decided")]
    ApprovalDecided { call: CallId, decision: Decision },
    /// A call differs from what was approved, or its authorization is no longer valid. It is checked again.
    #[serde(rename = "tool.drifted")]
    CallDrifted {
        call: CallId,
        differences: Vec<Difference>,
        /// The current tool, when the tool is different.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<Arc<Tool>>,
    },
    /// The deadline of a pending item was extended.
    #[serde(rename = "pending.extended")]
    Extended {
        call: CallId,
        /// The new deadline.
        until: Timestamp,
        /// The person who extended it.
        by: String,
        #[serde(default)]
        via: Channel,
    },
    /// A pending item was not answered in time.
    #[serde(rename = "pending.expired")]
    Expired { call: CallId },
    /// The user answered the model's question.
    #[serde(rename = "question.answered")]
    QuestionAnswered {
        /// The call that asked.
        call: CallId,
        answer: HumanAnswer,
    },
    /// Calls are sent to servers, or run by toolgate itself (intent, written before they are).
    #[serde(rename = "tool.started")]
    CallsStarted {
        /// The calls, all in flight together.
        calls: Vec<CallId>,
    },
    /// A call ended.
    #[serde(rename = "tool.completed")]
    CallCompleted {
        call: CallId,
        outcome: Arc<Outcome>,
        /// The server's stderr during a failed call. For people; the model does not read it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stderr: Vec<String>,
        /// How its server was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<Box<CallTransport>>,
    },
    /// The server requests input during the open call, which is held for the answer (MCP elicitation).
    #[serde(rename = "tool.input.requested")]
    InputRequested {
        call: CallId,
        needed: Arc<ElicitationRequest>,
        /// Until when the call is held; `None` for as long as its driver waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The call is suspended until its server's questions are answered.
    #[serde(rename = "tool.input.required")]
    InputRequired {
        call: CallId,
        needed: Arc<ElicitationRequest>,
        /// How its server was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<Box<CallTransport>>,
    },
    /// The server's questions about a call were answered.
    #[serde(rename = "tool.input.given")]
    InputGiven { call: CallId, given: ElicitationAnswer },
    /// The call became a task at its server, which is polled later.
    #[serde(rename = "tool.task.started")]
    TaskStarted {
        call: CallId,
        /// The task it became.
        task: Arc<TaskHandle>,
        /// How its server was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<Box<CallTransport>>,
    },
    /// A model is called for a summary of the conversation (intent, written before the request is sent).
    #[serde(rename = "compaction.started")]
    CompactionStarted {
        model: ModelName,
        /// 1 for the first attempt of this compaction.
        attempt: u32,
        /// The number of messages that the summary replaces, from the beginning of the conversation.
        replaces: u64,
        /// The number of messages after them, which are kept.
        keeps: u64,
    },
    /// The summary replaced the beginning of the conversation for later model calls.
    #[serde(rename = "compaction.completed")]
    CompactionCompleted {
        /// The summary as the model wrote it.
        summary: String,
        #[serde(default)]
        usage: Usage,
        model: ModelName,
    },
    /// There is no summary, and the turn continues without one.
    #[serde(rename = "compaction.failed")]
    CompactionFailed {
        error: Failure,
        #[serde(default)]
        usage: Usage,
    },
    #[serde(rename = "message.added")]
    MessageAdded {
        /// The message; a user message.
        message: Message,
    },
    /// The run was paused: it stops between two steps.
    #[serde(rename = "execution.paused")]
    Paused {
        /// The person or program that paused it.
        by: String,
        #[serde(default)]
        via: Channel,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The pause ended.
    #[serde(rename = "execution.unpaused")]
    Unpaused {
        /// The person or program that continued the run.
        by: String,
        #[serde(default)]
        via: Channel,
        /// The limits of the run from now on, if they change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Box<Limits>>,
    },
    /// The ending of the run is decided, and the calls that took effect are undone before it.
    #[serde(rename = "compensation.started")]
    CompensationStarted {
        ending: Ending,
        /// The undo calls, in their order.
        undo: Vec<UndoCall>,
    },
    /// The run is over.
    #[serde(rename = "execution.ended")]
    Ended { ending: Ending },
}

/// A journal entry: an event with its position and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Position in the journal, from 0.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: Event,
}

/// Whether the model may call tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAccess {
    /// Tools are available.
    Enabled,
    /// No tools: the tool budget is used up. The text of the reply is a final answer.
    BudgetExhausted,
    /// No tools: the stop condition of the agent holds. The text of the reply is a final answer.
    Stopped,
    /// No tools, and the reply is final in any case: a hard limit was reached.
    FinalAnswer,
}

/// The answers to an elicitation request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElicitationAnswer {
    /// One response for each question.
    pub reactions: ElicitationResponses,
    /// The person who answered.
    pub by: String,
    #[serde(default)]
    pub via: Channel,
    /// Whether the call may be sent a second time although it had begun when it was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

/// A person's answer to a question of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HumanAnswer {
    #[serde(flatten)]
    pub choice: Choice,
    /// The person who answered.
    pub by: String,
    #[serde(default)]
    pub via: Channel,
}

impl ElicitationAnswer {
    /// Whether any of the questions was answered, rather than declined or cancelled.
    pub fn accepts(&self) -> bool {
        self.reactions.values().any(|reaction| reaction.action == Action::Accept)
    }

    /// Whether these answers are equal. Those in the journal have the defaults of their forms filled in.
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        let says = |reaction: &ElicitationResponse, name: &String, value: &Value| {
            reaction.content.as_ref().is_some_and(|content| content.get(name) == Some(value))
        };
        let repeats = |(before, now): (&ElicitationResponse, &ElicitationResponse)| {
            before.action == now.action && now.content.iter().flatten().all(|(name, value)| says(before, name, value))
        };
        self.by == other.by
            && self.repeat == other.repeat
            && self.reactions.keys().eq(other.reactions.keys())
            && self.reactions.values().zip(other.reactions.values()).all(repeats)
    }
}

impl Event {
    /// The event for a server's reply to a call.
    pub fn of_reply(call: CallId, DeliveredReply { reply, wire }: DeliveredReply) -> Self {
        match reply {
            CallReply::Ended { outcome, stderr } => Self::CallCompleted { call, outcome: outcome.into(), stderr, wire },
            CallReply::NeedsInput(needed) => Self::InputRequired { call, needed: needed.into(), wire },
            CallReply::Task(task) => Self::TaskStarted { call, task: task.into(), wire },
        }
    }

    /// The calls that it is about.
    pub fn calls(&self) -> impl Iterator<Item = &CallId> {
        // The only exhaustive match: a new event about a call is in the call's history at once (decision 0026).
        let (calls, deferred): (&[CallId], &[CallId]) = match self {
            Self::TierSelected { run, deferred, .. } => (run, deferred),
            Self::CallsStarted { calls } => (calls, &[]),
            Self::CallChecked { call, .. }
            | Self::ApprovalDecided { call, .. }
            | Self::CallDrifted { call, .. }
            | Self::Extended { call, .. }
            | Self::Expired { call }
            | Self::QuestionAnswered { call, .. }
            | Self::CallCompleted { call, .. }
            | Self::InputRequested { call, .. }
            | Self::InputRequired { call, .. }
            | Self::InputGiven { call, .. }
            | Self::TaskStarted { call, .. } => (slice::from_ref(call), &[]),
            Self::Started(_)
            | Self::Resumed { .. }
            | Self::Queued
            | Self::Admitted
            | Self::Waited { .. }
            | Self::Interrupted { .. }
            | Self::ToolsListed { .. }
            | Self::ApprovalsResolved { .. }
            | Self::ModelCalled { .. }
            | Self::ModelCallRefused { .. }
            | Self::ModelReplied { .. }
            | Self::ModelFailed { .. }
            | Self::OutputValidated { .. }
            | Self::CompactionStarted { .. }
            | Self::CompactionCompleted { .. }
            | Self::CompactionFailed { .. }
            | Self::MessageAdded { .. }
            | Self::Paused { .. }
            | Self::Unpaused { .. }
            | Self::CompensationStarted { .. }
            | Self::Ended { .. } => (&[], &[]),
        };
        calls.iter().chain(deferred)
    }

    /// Whether the time for an answer passed: the item expired, or its policy decided. The journal and the time determine
    /// such an event.
    pub fn is_expiry(&self) -> bool {
        let is_decided = matches!(self, Self::ApprovalDecided { decision, .. } if decision.is_by_timeout());
        is_decided || matches!(self, Self::Expired { .. })
    }

    /// The trace of the execution that it begins, if it begins one.
    pub fn trace(&self) -> Option<&Trace> {
        if let Self::Started(started) = self {
            return Some(&started.trace);
        }
        if let Self::Resumed { trace, .. } = self { Some(trace) } else { None }
    }

    /// The first event with the conversation before the run, in place of the one it holds. Other events are unchanged.
    #[must_use]
    pub fn with_conversation(&self, conversation: Option<Arc<Segment>>) -> Self {
        let mut event = self.clone();
        if let Self::Started(started) = &mut event
            && started.predecessor.is_some()
        {
            let predecessor = Arc::make_mut(started).predecessor.as_mut();
            predecessor.into_iter().for_each(|predecessor| predecessor.conversation.clone_from(&conversation));
        }
        event
    }

    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started(_) => "execution.started",
            Self::Resumed { .. } => "execution.resumed",
            Self::Queued => "execution.queued",
            Self::Admitted => "execution.admitted",
            Self::Waited { .. } => "execution.waited",
            Self::Interrupted { .. } => "execution.interrupted",
            Self::ToolsListed { .. } => "tools.listed",
            Self::ApprovalsResolved { .. } => "approvals.resolved",
            Self::ModelCalled { .. } => "llm.call.started",
            Self::ModelReplied { .. } => "llm.call.completed",
            Self::ModelCallRefused { .. } => "llm.call.refused",
            Self::ModelFailed { .. } => "llm.call.failed",
            Self::OutputValidated { .. } => "output.validated",
            Self::TierSelected { .. } => "tool.tier.selected",
            Self::CallChecked { .. } => "tool.checked",
            Self::ApprovalDecided { .. } => "approval.decided",
            Self::CallDrifted { .. } => "tool.drifted",
            Self::Extended { .. } => "pending.extended",
            Self::Expired { .. } => "pending.expired",
            Self::QuestionAnswered { .. } => "question.answered",
            Self::CallsStarted { .. } => "tool.started",
            Self::CallCompleted { .. } => "tool.completed",
            Self::InputRequested { .. } => "tool.input.requested",
            Self::InputRequired { .. } => "tool.input.required",
            Self::InputGiven { .. } => "tool.input.given",
            Self::TaskStarted { .. } => "tool.task.started",
            Self::CompactionStarted { .. } => "compaction.started",
            Self::CompactionCompleted { .. } => "compaction.completed",
            Self::CompactionFailed { .. } => "compaction.failed",
            Self::MessageAdded { .. } => "message.added",
            Self::Paused { .. } => "execution.paused",
            Self::Unpaused { .. } => "execution.unpaused",
            Self::CompensationStarted { .. } => "compensation.started",
            Self::Ended { .. } => "execution.ended",
        }
    }
}
