//! Every lifecycle event there is, in one table.

use jiff::Timestamp;
use serde::Serialize;

use super::{CallRef, Content, Owed};
use crate::core::chat::{Media, Stop, Usage};
use crate::core::error::Failure;
use crate::core::id::{AgentName, CallId, ModelName, RunId, SessionId};
use crate::core::run::{Answer, Channel, Coverage, Debt, Granted, Offer, PolicyMark, Rejection, Scope, Status};
use crate::core::tool::{Difference, Kept, LeftOut, Problem, ToolName};
use crate::core::trace::TraceId;
use crate::ports::Delta;

/// One event of the stream. In JSON one flat object: `seq`, `run_id`, `at`, `iteration`, `type` and the fact's fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LifecycleEvent {
    /// Journal position of the fact it tells; `None` for what is not journaled. Several events may tell one fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The run.
    pub run_id: RunId,
    /// When; `None` for fragments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Model turns begun so far; 0 before the first.
    pub iteration: u32,
    /// What happened.
    #[serde(flatten)]
    pub fact: Fact,
}

/// What happened. Fields that quote the conversation are there only with `Content::Include`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
#[allow(missing_docs)] // the fields are named as in the JSON that FEATURES and DESIGN describe
pub enum Fact {
    /// The run exists.
    #[serde(rename = "execution.started")]
    Started {
        agent: AgentName,
        model: ModelName,
        session_id: SessionId,
        trace_id: TraceId,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<String>,
    },
    /// A driver took the run up again.
    #[serde(rename = "execution.resumed")]
    Resumed { trace_id: TraceId },
    /// The run waits for others.
    #[serde(rename = "execution.pending")]
    Pending { pending: Vec<Owed> },
    /// It ended with a valid answer.
    #[serde(rename = "execution.completed")]
    Completed {
        tool_interactions: u32,
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        media: Vec<Media>,
    },
    /// It ended without one.
    #[serde(rename = "execution.failed")]
    Failed {
        status: Status,
        error: Failure,
        tool_interactions: u32,
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        media: Vec<Media>,
    },
    /// Somebody stopped it.
    #[serde(rename = "execution.cancelled")]
    Cancelled {
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        tool_interactions: u32,
        usage: Usage,
    },
    /// The context of a turn is about to be built.
    #[serde(rename = "context.build.started")]
    ContextBuildStarted,
    /// It was built.
    #[serde(rename = "context.build.success")]
    ContextBuildSuccess,
    /// What the model is offered from now on.
    #[serde(rename = "tools.listed")]
    ToolsListed {
        tools: Vec<ToolName>,
        left_out: Vec<LeftOut>,
        /// Those whose definition is not what the run was first shown.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        changed: Vec<ToolName>,
    },
    /// Which guarded tools run without a person.
    #[serde(rename = "approvals.resolved")]
    ApprovalsResolved { granted: Vec<Granted> },
    /// The model is asked.
    #[serde(rename = "llm.call.started")]
    ModelCalled {
        model: ModelName,
        /// Whether it stands in for the run's own model.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        fallback: bool,
        attempt: u32,
        offer: Offer,
    },
    /// It, or another one in its place, is asked once more in the same turn.
    #[serde(rename = "llm.call.retrying")]
    ModelRetrying {
        model: ModelName,
        attempt: u32,
        /// The model that was asked before, when it is another one.
        #[serde(skip_serializing_if = "Option::is_none")]
        instead_of: Option<ModelName>,
    },
    /// It answered.
    #[serde(rename = "llm.call.completed")]
    ModelReplied {
        model: ModelName,
        /// Whether it stands in for the run's own model.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        fallback: bool,
        /// What the provider says it was.
        #[serde(skip_serializing_if = "Option::is_none")]
        response_model: Option<String>,
        attempt: u32,
        stop: Stop,
        usage: Usage,
        duration_ms: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        first_token_ms: Option<u64>,
        tool_calls: Vec<CallRef>,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// An attempt failed.
    #[serde(rename = "llm.call.failed")]
    ModelFailed { model: ModelName, attempt: u32, error: Failure, usage: Usage, duration_ms: u64 },
    /// Of the calls in a reply, these run and those wait.
    #[serde(rename = "tool.tier.selected")]
    TierSelected { priority: i32, run: Vec<CallId>, deferred: Vec<CallId> },
    /// A call was sent to its server.
    #[serde(rename = "tool.mcp.executing")]
    McpExecuting {
        #[serde(flatten)]
        call: CallRef,
    },
    /// It has its end.
    #[serde(rename = "tool.mcp.completed")]
    McpCompleted {
        #[serde(flatten)]
        call: CallRef,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'static str>,
        /// The bytes of its text, those that are not shown included.
        result_bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// What of it is kept outside the journal.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        kept: Vec<Kept>,
        /// Where its structured form does not fit the tool's output schema.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        problems: Vec<Problem>,
        /// What its server wrote to stderr meanwhile, when it failed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        stderr: Vec<String>,
    },
    /// toolgate is about to answer a call itself.
    #[serde(rename = "tool.builtin.executing")]
    BuiltinExecuting {
        #[serde(flatten)]
        call: CallRef,
    },
    /// It did.
    #[serde(rename = "tool.builtin.completed")]
    BuiltinCompleted {
        #[serde(flatten)]
        call: CallRef,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'static str>,
        result_bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<String>,
    },
    /// Its server asks for input on the open call, which is held for the answer.
    #[serde(rename = "tool.input.requested")]
    InputRequested {
        #[serde(flatten)]
        call: CallRef,
        /// The server's keys of its questions.
        asks: Vec<String>,
        /// What it asks, for a person, in the same order.
        #[serde(skip_serializing_if = "Option::is_none")]
        messages: Option<Vec<String>>,
        /// Until when the call is held.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// Its server wants to know something first.
    #[serde(rename = "tool.input.required")]
    InputRequired {
        #[serde(flatten)]
        call: CallRef,
        /// The server's keys of its questions.
        asks: Vec<String>,
        /// What it asks, for a person, in the same order.
        #[serde(skip_serializing_if = "Option::is_none")]
        messages: Option<Vec<String>>,
        /// Whether the call is sent again from its beginning with the answers.
        restarts: bool,
        /// Whether that wants an explicit yes, because the call had begun.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        repeats: bool,
    },
    /// It was told.
    #[serde(rename = "tool.input.given")]
    InputGiven {
        #[serde(flatten)]
        call: CallRef,
        by: String,
        via: Channel,
    },
    /// Its server goes on with it by itself.
    #[serde(rename = "tool.task.started")]
    TaskStarted {
        #[serde(flatten)]
        call: CallRef,
        task_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        poll_ms: Option<u64>,
    },
    /// The caller is to run a call.
    #[serde(rename = "tool.external.requested")]
    ExternalRequested {
        #[serde(flatten)]
        call: CallRef,
    },
    /// The caller returned its result.
    #[serde(rename = "tool.external.completed")]
    ExternalCompleted {
        #[serde(flatten)]
        call: CallRef,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'static str>,
        /// The bytes of its text, those that are not shown included.
        result_bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// What of it is kept outside the journal.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        kept: Vec<Kept>,
    },
    /// A call was refused without being run.
    #[serde(rename = "tool.rejected")]
    Rejected {
        #[serde(flatten)]
        call: CallRef,
        reason: Rejection,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The tool budget is used up; told on every iteration from then on.
    #[serde(rename = "tool.budget.exhausted")]
    BudgetExhausted { used: u32, max: u32 },
    /// A person is asked about a call.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        #[serde(flatten)]
        call: CallRef,
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        why: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        policy: Option<PolicyMark>,
        /// Until when there is time for an answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        within_s: Option<u64>,
    },
    /// They decided.
    #[serde(rename = "approval.decided")]
    ApprovalDecided {
        #[serde(flatten)]
        call: CallRef,
        answer: Answer,
        by: String,
        via: Channel,
        scope: Scope,
        covers: Coverage,
        /// Until when a yes with a wider scope holds.
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
        edited: bool,
        /// The policy that asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        policy: Option<PolicyMark>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody did in time.
    #[serde(rename = "approval.expired")]
    ApprovalExpired {
        #[serde(flatten)]
        call: CallRef,
    },
    /// A result of the caller's, or an answer, did not come in time.
    #[serde(rename = "pending.expired")]
    PendingExpired {
        #[serde(flatten)]
        call: CallRef,
    },
    /// Somebody gave more time.
    #[serde(rename = "pending.extended")]
    PendingExtended {
        #[serde(flatten)]
        call: CallRef,
        until: Timestamp,
        by: String,
        via: Channel,
    },
    /// What a call was cleared for is no longer what would run; it is checked again.
    #[serde(rename = "tool.drifted")]
    Drifted {
        #[serde(flatten)]
        call: CallRef,
        /// What differs, in words.
        changed: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        differences: Option<Vec<Difference>>,
    },
    /// The model asks a person something.
    #[serde(rename = "question.asked")]
    QuestionAsked {
        #[serde(flatten)]
        call: CallRef,
    },
    /// They answered.
    #[serde(rename = "question.answered")]
    QuestionAnswered {
        #[serde(flatten)]
        call: CallRef,
        by: String,
        via: Channel,
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// Arguments or an answer do not fit; `target` is `arguments` or `output`.
    #[serde(rename = "validation.failed")]
    ValidationFailed {
        target: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        problems: Vec<Problem>,
    },
    /// The answer is valid.
    #[serde(rename = "output.validated")]
    OutputValidated,
    /// Somebody said something to the run.
    #[serde(rename = "message.added")]
    MessageAdded {
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A fragment, under its own name.
    #[serde(untagged)]
    Fragment(Delta),
}

impl LifecycleEvent {
    /// `execution.pending`. It is told by whoever knows that the run waits: the wait itself is never journaled (law 8).
    pub fn pending(run: &RunId, at: Timestamp, iteration: u32, debts: &[Debt], content: Content) -> Self {
        let pending = debts.iter().map(|debt| Owed::new(debt, content)).collect();
        Self { seq: None, run_id: run.clone(), at: Some(at), iteration, fact: Fact::Pending { pending } }
    }

    /// The name it has in JSON.
    pub fn name(&self) -> &'static str {
        self.fact.name()
    }
}

impl Fact {
    /// The name it has in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "execution.started",
            Self::Resumed { .. } => "execution.resumed",
            Self::Pending { .. } => "execution.pending",
            Self::Completed { .. } => "execution.completed",
            Self::Failed { .. } => "execution.failed",
            Self::Cancelled { .. } => "execution.cancelled",
            Self::ContextBuildStarted => "context.build.started",
            Self::ContextBuildSuccess => "context.build.success",
            Self::ToolsListed { .. } => "tools.listed",
            Self::ApprovalsResolved { .. } => "approvals.resolved",
            Self::ModelCalled { .. } => "llm.call.started",
            Self::ModelRetrying { .. } => "llm.call.retrying",
            Self::ModelReplied { .. } => "llm.call.completed",
            Self::ModelFailed { .. } => "llm.call.failed",
            Self::TierSelected { .. } => "tool.tier.selected",
            Self::McpExecuting { .. } => "tool.mcp.executing",
            Self::McpCompleted { .. } => "tool.mcp.completed",
            Self::BuiltinExecuting { .. } => "tool.builtin.executing",
            Self::BuiltinCompleted { .. } => "tool.builtin.completed",
            Self::InputRequested { .. } => "tool.input.requested",
            Self::InputRequired { .. } => "tool.input.required",
            Self::InputGiven { .. } => "tool.input.given",
            Self::TaskStarted { .. } => "tool.task.started",
            Self::ExternalRequested { .. } => "tool.external.requested",
            Self::ExternalCompleted { .. } => "tool.external.completed",
            Self::Rejected { .. } => "tool.rejected",
            Self::BudgetExhausted { .. } => "tool.budget.exhausted",
            Self::ApprovalRequested { .. } => "approval.requested",
            Self::ApprovalDecided { .. } => "approval.decided",
            Self::ApprovalExpired { .. } => "approval.expired",
            Self::PendingExpired { .. } => "pending.expired",
            Self::PendingExtended { .. } => "pending.extended",
            Self::Drifted { .. } => "tool.drifted",
            Self::QuestionAsked { .. } => "question.asked",
            Self::QuestionAnswered { .. } => "question.answered",
            Self::ValidationFailed { .. } => "validation.failed",
            Self::OutputValidated => "output.validated",
            Self::MessageAdded { .. } => "message.added",
            Self::Fragment(Delta::Text { .. }) => "llm.text.delta",
            Self::Fragment(Delta::Reasoning { .. }) => "llm.reasoning.delta",
            Self::Fragment(Delta::Progress { .. }) => "tool.mcp.progress",
        }
    }
}
