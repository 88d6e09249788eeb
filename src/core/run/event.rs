//! The facts a journal is made of: about a dozen, past tense, without ids or a clock of their own.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Channel, Decision, Ending, Granted, Limits, PolicyMark, Started};
use crate::core::chat::{Message, Reply, Usage};
use crate::core::error::Failure;
use crate::core::id::{CallId, GrantId, ModelName};
use crate::core::json;
use crate::core::tool::{
    Action, CallReply, Choice, Difference, InputNeeded, Outcome, Problem, Reaction, Reactions, Replied, TaskHandle,
    Tool, Toolset, Wire,
};
use crate::core::trace::Trace;

/// One fact. In JSON its name is `type`; names that source 002 defines are its names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Event {
    /// The run exists. Always the first fact, written before anything runs.
    #[serde(rename = "execution.started")]
    Started(Arc<Started>),
    /// A further execution of the run, in a new trace.
    #[serde(rename = "execution.resumed")]
    Resumed {
        /// The trace of this execution.
        trace: Trace,
        /// The limits of a fork, whose own budget starts here; absent in every other execution.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Box<Limits>>,
    },
    /// What the model is offered from now on.
    #[serde(rename = "tools.listed")]
    ToolsListed {
        /// The toolset, with the policy's verdict on each tool.
        toolset: Arc<Toolset>,
    },
    /// The approval cache was asked, in one batch, which guarded tools are granted.
    #[serde(rename = "approvals.resolved")]
    ApprovalsResolved {
        /// The standing approvals that hold in this turn.
        granted: Vec<Granted>,
    },
    /// The model is asked (intent, written before the request is sent).
    #[serde(rename = "llm.call.started")]
    ModelCalled {
        /// The model that is asked, by its configured name.
        model: ModelName,
        /// 1 for the first attempt of this turn, at whatever model.
        attempt: u32,
        /// Whether the model may ask for tools.
        offer: Offer,
    },
    /// The model answered.
    #[serde(rename = "llm.call.completed")]
    ModelReplied {
        /// The whole reply.
        reply: Arc<Reply>,
    },
    /// An attempt at the model failed.
    #[serde(rename = "llm.call.failed")]
    ModelFailed {
        /// Why.
        error: Failure,
        /// What the attempt used all the same.
        #[serde(default)]
        usage: Usage,
        /// Until when the model is passed over while another one is free; `None` when it is asked again, or is the only
        /// one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cools_until: Option<Timestamp>,
    },
    /// The final answer was checked.
    #[serde(rename = "output.validated")]
    OutputValidated {
        /// The finding.
        verdict: OutputVerdict,
    },
    /// Of the calls in a reply, these run now and those do not.
    #[serde(rename = "tool.tier.selected")]
    TierSelected {
        /// The priority that the running calls share.
        priority: i32,
        /// The calls of this tier, in the model's order.
        run: Vec<CallId>,
        /// The calls below it.
        deferred: Vec<CallId>,
    },
    /// It was settled whether a call may run.
    #[serde(rename = "tool.checked")]
    CallChecked {
        /// The call.
        call: CallId,
        /// The finding.
        verdict: CallVerdict,
    },
    /// A person, or somebody in their name, decided about a call.
    #[serde(rename = "approval.decided")]
    ApprovalDecided {
        /// The call.
        call: CallId,
        /// The decision.
        decision: Decision,
    },
    /// What a call was cleared for is no longer what would run, or no longer by that right. It is checked again.
    #[serde(rename = "tool.drifted")]
    CallDrifted {
        /// The call.
        call: CallId,
        /// What has become different.
        differences: Vec<Difference>,
        /// The tool as it is now, when that is what differs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<Arc<Tool>>,
    },
    /// Somebody gave more time for what is owed.
    #[serde(rename = "pending.extended")]
    Extended {
        /// The call.
        call: CallId,
        /// Until when.
        until: Timestamp,
        /// Who did.
        by: String,
        /// Where they did.
        #[serde(default)]
        via: Channel,
    },
    /// What was owed did not come in time.
    #[serde(rename = "pending.expired")]
    Expired {
        /// The call.
        call: CallId,
    },
    /// A person answered the model's question.
    #[serde(rename = "question.answered")]
    QuestionAnswered {
        /// The call that asked.
        call: CallId,
        /// The answer.
        answer: HumanAnswer,
    },
    /// Calls are sent to servers, or made by toolgate itself (intent, written before they are).
    #[serde(rename = "tool.started")]
    CallsStarted {
        /// The calls, all in flight together.
        calls: Vec<CallId>,
    },
    /// A call has its end.
    #[serde(rename = "tool.completed")]
    CallCompleted {
        /// The call.
        call: CallId,
        /// How it ended.
        outcome: Arc<Outcome>,
        /// What its server wrote to stderr meanwhile, when the call failed. For people; the model does not read it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stderr: Vec<String>,
        /// How its server was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<Box<Wire>>,
    },
    /// The server asks for input on the open call, which is held for the answer (MCP elicitation).
    #[serde(rename = "tool.input.requested")]
    InputRequested {
        /// The call.
        call: CallId,
        /// What the server wants to know.
        needed: Arc<InputNeeded>,
        /// Until when the call is held; `None` for as long as its driver waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The call is suspended until its server's questions are answered.
    #[serde(rename = "tool.input.required")]
    InputRequired {
        /// The call.
        call: CallId,
        /// What the server wants to know.
        needed: Arc<InputNeeded>,
        /// How its server was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<Box<Wire>>,
    },
    /// The server's questions about a call were answered.
    #[serde(rename = "tool.input.given")]
    InputGiven {
        /// The call.
        call: CallId,
        /// The answers.
        given: InputGiven,
    },
    /// The server goes on with a call by itself, and is asked about it later.
    #[serde(rename = "tool.task.started")]
    TaskStarted {
        /// The call.
        call: CallId,
        /// The task it became.
        task: Arc<TaskHandle>,
        /// How its server was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<Box<Wire>>,
    },
    /// Somebody said something to the run.
    #[serde(rename = "message.added")]
    MessageAdded {
        /// What they said; a user message.
        message: Message,
    },
    /// The run is over.
    #[serde(rename = "execution.ended")]
    Ended {
        /// How.
        ending: Ending,
    },
}

/// A fact in its place: position and time are the journal's, not the fact's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Position in the journal, from 0.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// The fact.
    #[serde(flatten)]
    pub event: Event,
}

/// Whether the model may ask for tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    /// It may.
    Tools,
    /// It may not: the tool budget is used up. Its text is a final answer.
    NoTools,
    /// It may not, and whatever it says is the last word: a hard limit was reached.
    LastWord,
}

/// What a check of the final answer found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputVerdict {
    /// It is valid; the parsed value, if it was to be JSON.
    Valid {
        /// The parsed answer.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
        value: Option<Value>,
    },
    /// It is not; the model reads why.
    Invalid {
        /// What is wrong.
        problems: Vec<Problem>,
    },
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallVerdict {
    /// It may.
    Run {
        /// By what right.
        by: Right,
    },
    /// A person decides.
    Ask {
        /// The policy rule that asks; `None` for the policy's default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Why a person is asked.
        why: String,
        /// The policy that asks; `None` when it is not a policy that does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<PolicyMark>,
        /// How many seconds there are for an answer; `None` for as long as the run lives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within_s: Option<u64>,
    },
    /// It may not; the model reads why.
    Rejected {
        /// The kind, for machines.
        reason: Rejection,
        /// What the model reads.
        message: String,
        /// What is wrong with the arguments, problem by problem, when they do not fit.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<Problem>,
    },
}

/// By what right a call runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// The policy allows it.
    Policy {
        /// The rule; `None` for the policy's default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// The policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<PolicyMark>,
    },
    /// A standing approval covers it.
    Grant {
        /// The approval.
        grant: GrantId,
    },
    /// A person said yes, and what would run is what they said yes to. Written of calls that are answered outside; of those
    /// that are sent, `tool.started` says it.
    Person,
}

/// Why a call was refused without being run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// There is no such tool.
    Unknown,
    /// The arguments do not fit its schema.
    InvalidArguments,
    /// The policy, or a person before, said no.
    Denied,
    /// The budget is used up.
    Budget,
    /// A call of higher priority ran first.
    Deferred,
    /// Nobody answered in time.
    Expired,
}

impl Rejection {
    /// The stable word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::InvalidArguments => "invalid_arguments",
            Self::Denied => "denied",
            Self::Budget => "budget",
            Self::Deferred => "deferred",
            Self::Expired => "expired",
        }
    }
}

/// The answers to what a server wanted to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputGiven {
    /// One for each question.
    pub reactions: Reactions,
    /// Who answered.
    pub by: String,
    /// Where they did.
    #[serde(default)]
    pub via: Channel,
    /// Whether the call may be sent a second time although it had begun when it was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

/// A person's answer to a question of the model's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HumanAnswer {
    /// What they answered.
    #[serde(flatten)]
    pub choice: Choice,
    /// Who answered.
    pub by: String,
    /// Where they did.
    #[serde(default)]
    pub via: Channel,
}

impl InputGiven {
    /// Whether any of the questions was answered, rather than declined or cancelled.
    pub fn accepts(&self) -> bool {
        self.reactions.values().any(|reaction| reaction.action == Action::Accept)
    }

    /// Whether these answers say nothing else. Those in the journal have the defaults of their forms filled in.
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        let says = |reaction: &Reaction, name: &String, value: &Value| {
            reaction.content.as_ref().is_some_and(|content| content.get(name) == Some(value))
        };
        let repeats = |(before, now): (&Reaction, &Reaction)| {
            before.action == now.action && now.content.iter().flatten().all(|(name, value)| says(before, name, value))
        };
        self.by == other.by
            && self.repeat == other.repeat
            && self.reactions.keys().eq(other.reactions.keys())
            && self.reactions.values().zip(other.reactions.values()).all(repeats)
    }
}

impl Event {
    /// What it means for a call that its server replied so.
    pub fn of_reply(call: CallId, Replied { reply, wire }: Replied) -> Self {
        match reply {
            CallReply::Ended { outcome, stderr } => Self::CallCompleted { call, outcome: outcome.into(), stderr, wire },
            CallReply::NeedsInput(needed) => Self::InputRequired { call, needed: needed.into(), wire },
            CallReply::Task(task) => Self::TaskStarted { call, task: task.into(), wire },
        }
    }

    /// The name it has in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started(_) => "execution.started",
            Self::Resumed { .. } => "execution.resumed",
            Self::ToolsListed { .. } => "tools.listed",
            Self::ApprovalsResolved { .. } => "approvals.resolved",
            Self::ModelCalled { .. } => "llm.call.started",
            Self::ModelReplied { .. } => "llm.call.completed",
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
            Self::MessageAdded { .. } => "message.added",
            Self::Ended { .. } => "execution.ended",
        }
    }
}
