//! Kinds of lifecycle events: every event of the public stream, in one table.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::{CallEnd, CallRef, Delta, FragmentSource, IncompleteDetails, PendingRef, UndoRef, wire_forms};
use crate::chat::{Stop, Usage};
use crate::error::Failure;
use crate::id::{AgentName, CallId, GrantId, ModelName, SessionId};
use crate::policy::{OnTimeout, PolicyMark};
use crate::run::{
    CallEstimate, Channel, Coverage, DecisionKind, Limit, Limits, Output, Rejection, Restart, RunWarning, Scope,
    Status, ToolAccess, ToolGrant,
};
use crate::timestamp::{millis, optional_millis};
use crate::tool::{Difference, LeftOut, Problem, ServerAuthorization, ToolName};
use crate::trace::TraceId;

/// The kinds of events. Fields that quote the conversation are present only with `Content::Include`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum LifecycleKind {
    /// The run was created.
    #[serde(rename = "execution.started")]
    Started {
        agent: AgentName,
        model: ModelName,
        session_id: SessionId,
        trace_id: TraceId,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        /// Why the run does not continue the conversation of its session.
        restart: Option<Restart>,
    },
    /// A driver resumed the run.
    #[serde(rename = "execution.resumed")]
    Resumed { trace_id: TraceId },
    /// The run waits for the items listed.
    #[serde(rename = "execution.pending")]
    Pending { pending: Vec<PendingRef> },
    /// The run was paused: it stops between two steps.
    #[serde(rename = "execution.paused")]
    Paused { by: String, via: Channel, reason: Option<String> },
    /// The pause ended.
    #[serde(rename = "execution.unpaused")]
    Unpaused {
        by: String,
        via: Channel,
        #[serde(serialize_with = "wire_forms::optional_limits")]
        limits: Option<Box<Limits>>,
    },
    /// The run ended with a valid answer.
    #[serde(rename = "execution.completed")]
    Completed {
        tool_interactions: u32,
        #[serde(serialize_with = "wire_forms::usage")]
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire_forms::optional_output")]
        output: Option<Output>,
        #[serde(serialize_with = "wire_forms::warnings")]
        warnings: Vec<RunWarning>,
    },
    /// The run ended with an error.
    #[serde(rename = "execution.failed")]
    Failed {
        #[serde(serialize_with = "wire_forms::failure")]
        error: Failure,
        tool_interactions: u32,
        #[serde(serialize_with = "wire_forms::usage")]
        usage: Usage,
    },
    /// The run ended at a hard limit.
    #[serde(rename = "execution.incomplete")]
    Incomplete {
        #[serde(serialize_with = "wire_forms::failure")]
        error: Failure,
        incomplete_details: IncompleteDetails,
        tool_interactions: u32,
        #[serde(serialize_with = "wire_forms::usage")]
        usage: Usage,
        /// The last answer, if there is one; the outer `None` without `Content::Include`.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire_forms::included_output")]
        output: Option<Option<Output>>,
    },
    /// The run waited too long for a required action.
    #[serde(rename = "execution.expired")]
    Expired {
        #[serde(serialize_with = "wire_forms::failure")]
        error: Failure,
        tool_interactions: u32,
        #[serde(serialize_with = "wire_forms::usage")]
        usage: Usage,
    },
    #[serde(rename = "execution.cancelled")]
    Cancelled {
        reason: Option<String>,
        /// The text of the reply that the cancellation stopped; only with content.
        #[serde(skip_serializing_if = "Option::is_none")]
        partial_reply: Option<String>,
        tool_interactions: u32,
        #[serde(serialize_with = "wire_forms::usage")]
        usage: Usage,
    },
    /// The run will end with this status, and undoes the calls that took effect before it.
    #[serde(rename = "compensation.started")]
    CompensationStarted { status: Status, undo: Vec<UndoRef> },
    /// The driver starts to build the context of a turn.
    #[serde(rename = "context.build.started")]
    ContextBuildStarted,
    /// The context was built.
    #[serde(rename = "context.build.success")]
    ContextBuildSuccess,
    /// The authorization status of an MCP server, or a change of it.
    #[serde(rename = "server.auth")]
    ServerAuth {
        #[serde(flatten, serialize_with = "wire_forms::authorization")]
        authorization: ServerAuthorization,
    },
    /// The tools available to the model from now on.
    #[serde(rename = "tools.listed")]
    ToolsListed {
        tools: Vec<ToolName>,
        #[serde(rename = "skipped", serialize_with = "wire_forms::left_out")]
        left_out: Vec<LeftOut>,
        /// Tools whose definition differs from the one that the run saw first.
        changed: Vec<ToolName>,
        /// Rules and patterns of the configuration that match no tool.
        warnings: Vec<String>,
    },
    /// Guarded tools that are approved in advance.
    #[serde(rename = "approvals.resolved")]
    ApprovalsResolved {
        #[serde(serialize_with = "wire_forms::grants")]
        granted: Arc<Vec<ToolGrant>>,
    },
    /// The driver called the model.
    #[serde(rename = "llm.call.started")]
    ModelCalled {
        model: ModelName,
        /// Whether it is a fallback for the run's own model.
        fallback: bool,
        attempt: u32,
        tool_access: ToolAccess,
    },
    /// The driver calls a model again in the same turn: the same one or a fallback.
    #[serde(rename = "llm.call.retrying")]
    ModelRetrying {
        model: ModelName,
        attempt: u32,
        /// The model called before, if it was a different one.
        instead_of: Option<ModelName>,
    },
    #[serde(rename = "llm.call.completed")]
    ModelReplied {
        model: ModelName,
        /// Whether it is a fallback for the run's own model.
        fallback: bool,
        /// The model name that the provider reports.
        response_model: Option<String>,
        attempt: u32,
        stop: Stop,
        #[serde(serialize_with = "wire_forms::usage")]
        usage: Usage,
        /// The usage of the run up to and including this attempt, as its limits count it.
        #[serde(serialize_with = "wire_forms::usage")]
        cumulative: Usage,
        duration_ms: u64,
        first_token_ms: Option<u64>,
        tool_calls: Vec<CallRef>,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A model call was not made: its worst case would exceed a hard limit, or the governor refused it.
    #[serde(rename = "llm.call.refused")]
    ModelCallRefused {
        model: ModelName,
        limit: Limit,
        reason: String,
        #[serde(serialize_with = "wire_forms::estimate")]
        estimate: CallEstimate,
    },
    /// An attempt at the model failed.
    #[serde(rename = "llm.call.failed")]
    ModelFailed {
        model: ModelName,
        attempt: u32,
        #[serde(serialize_with = "wire_forms::failure")]
        error: Failure,
        #[serde(serialize_with = "wire_forms::usage")]
        usage: Usage,
        /// The usage of the run up to and including this attempt, as its limits count it.
        #[serde(serialize_with = "wire_forms::usage")]
        cumulative: Usage,
        duration_ms: u64,
    },
    /// A model was called for a summary of the conversation.
    #[serde(rename = "conversation.compaction.started")]
    CompactionStarted { model: ModelName, attempt: u32, replaces: u64, keeps: u64 },
    /// The summary replaced the beginning of the conversation for later model calls.
    #[serde(rename = "conversation.compaction.completed")]
    CompactionCompleted {
        model: ModelName,
        #[serde(serialize_with = "wire_forms::usage")]
        usage: Usage,
        /// The usage of the run up to and including this attempt, as its limits count it.
        #[serde(serialize_with = "wire_forms::usage")]
        cumulative: Usage,
        duration_ms: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// There is no summary, and the turn continues without one.
    #[serde(rename = "conversation.compaction.failed")]
    CompactionFailed {
        #[serde(serialize_with = "wire_forms::failure")]
        error: Failure,
        #[serde(serialize_with = "wire_forms::usage")]
        usage: Usage,
        #[serde(serialize_with = "wire_forms::usage")]
        cumulative: Usage,
        duration_ms: u64,
    },
    /// The calls of a reply that run now, and the ones deferred.
    #[serde(rename = "tool.tier.selected")]
    TierSelected { priority: i32, run: Vec<CallId>, deferred: Vec<CallId> },
    /// A call was sent to its server.
    #[serde(rename = "tool.mcp.executing")]
    McpExecuting {
        #[serde(flatten)]
        call: CallRef,
        /// The grant that covers it in place of an approval.
        #[serde(skip_serializing_if = "Option::is_none")]
        grant_id: Option<GrantId>,
    },
    /// An MCP call ended.
    #[serde(rename = "tool.mcp.completed")]
    McpCompleted {
        #[serde(flatten)]
        call: CallRef,
        duration_ms: Option<u64>,
        #[serde(flatten)]
        end: CallEnd,
        /// Mismatches of the structured result with the tool's output schema.
        problems: Vec<Problem>,
        /// Lines that its server wrote to stderr during the call, if the call failed; only with `Content::Include`.
        #[serde(skip_serializing_if = "Option::is_none")]
        stderr: Option<Vec<String>>,
    },
    /// toolgate starts to answer a call itself.
    #[serde(rename = "tool.builtin.executing")]
    BuiltinExecuting {
        #[serde(flatten)]
        call: CallRef,
    },
    /// toolgate answered the call.
    #[serde(rename = "tool.builtin.completed")]
    BuiltinCompleted {
        #[serde(flatten)]
        call: CallRef,
        duration_ms: Option<u64>,
        #[serde(flatten)]
        end: CallEnd,
    },
    /// The server requests input on the open call. The call is held open for the answer.
    #[serde(rename = "tool.input.requested")]
    InputRequested {
        #[serde(flatten)]
        call: CallRef,
        /// The server's keys of its questions.
        asks: Vec<String>,
        /// The text of the questions, in the same order.
        #[serde(skip_serializing_if = "Option::is_none")]
        messages: Option<Vec<String>>,
        /// The time until which the call is held.
        #[serde(serialize_with = "optional_millis")]
        held_until: Option<Timestamp>,
    },
    /// The server ended the call with questions that must be answered first.
    #[serde(rename = "tool.input.required")]
    InputRequired {
        #[serde(flatten)]
        call: CallRef,
        /// The server's keys of its questions.
        asks: Vec<String>,
        /// The text of the questions, in the same order.
        #[serde(skip_serializing_if = "Option::is_none")]
        messages: Option<Vec<String>>,
        /// Whether the call is sent again from the start with the answers.
        restarts: bool,
        /// Whether sending it again requires an explicit yes, because the call had already started.
        repeats: bool,
    },
    /// The questions were answered, or declined.
    #[serde(rename = "tool.input.given")]
    InputGiven {
        #[serde(flatten)]
        call: CallRef,
        by: String,
        via: Channel,
        /// Whether any of the questions was answered, rather than declined or cancelled.
        accepted: bool,
    },
    /// The server turned the call into a task.
    #[serde(rename = "tool.task.started")]
    TaskStarted {
        #[serde(flatten)]
        call: CallRef,
        task_id: String,
        poll_ms: Option<u64>,
    },
    /// The caller is asked to run a call.
    #[serde(rename = "tool.external.requested")]
    ExternalRequested {
        #[serde(flatten)]
        call: CallRef,
    },
    /// The caller returned the result.
    #[serde(rename = "tool.external.completed")]
    ExternalCompleted {
        #[serde(flatten)]
        call: CallRef,
        #[serde(flatten)]
        end: CallEnd,
    },
    /// A call was rejected without being run.
    #[serde(rename = "tool.rejected")]
    Rejected {
        #[serde(flatten)]
        call: CallRef,
        reason: Rejection,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The tool budget is used up; sent on every iteration from then on.
    #[serde(rename = "tool.budget.exhausted")]
    BudgetExhausted { used: u32, max: u32 },
    /// A call requires approval.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        #[serde(flatten)]
        call: CallRef,
        rule: Option<String>,
        reason: String,
        policy: Option<PolicyMark>,
        /// The deadline of the decision.
        answer_timeout_s: Option<u64>,
        /// The effect of no decision by then.
        on_timeout: OnTimeout,
    },
    /// The approver decided.
    #[serde(rename = "approval.decided")]
    ApprovalDecided {
        #[serde(flatten)]
        call: CallRef,
        decision: DecisionKind,
        by: String,
        via: Channel,
        scope: Scope,
        #[serde(rename = "match")]
        coverage: Coverage,
        /// The end of a grant that the decision created.
        #[serde(serialize_with = "optional_millis")]
        expires_at: Option<Timestamp>,
        edited: bool,
        /// The policy that required the approval.
        policy: Option<PolicyMark>,
        reason: Option<String>,
    },
    #[serde(rename = "approval.expired")]
    ApprovalExpired {
        #[serde(flatten)]
        call: CallRef,
    },
    /// An external result or an answer did not arrive in time.
    #[serde(rename = "pending.expired")]
    PendingExpired {
        #[serde(flatten)]
        call: CallRef,
    },
    /// The deadline was extended.
    #[serde(rename = "pending.extended")]
    PendingExtended {
        #[serde(flatten)]
        call: CallRef,
        /// The new deadline.
        #[serde(serialize_with = "millis")]
        expires_at: Timestamp,
        by: String,
        via: Channel,
    },
    /// A call differs from the one that was approved; it is checked again.
    #[serde(rename = "tool.drifted")]
    Drifted {
        #[serde(flatten)]
        call: CallRef,
        /// The differences, in words.
        changed: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "wire_forms::optional_differences")]
        differences: Option<Vec<Difference>>,
    },
    /// The model asks the user a question.
    #[serde(rename = "question.asked")]
    QuestionAsked {
        #[serde(flatten)]
        call: CallRef,
    },
    /// The user answered.
    #[serde(rename = "question.answered")]
    QuestionAnswered {
        #[serde(flatten)]
        call: CallRef,
        by: String,
        via: Channel,
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// Arguments or an answer do not match their schema; `target` is `arguments` or `output`. `advisory`: the call goes on.
    #[serde(rename = "validation.failed")]
    ValidationFailed { target: &'static str, call_id: Option<CallId>, problems: Vec<Problem>, advisory: bool },
    /// The answer matches its schema.
    #[serde(rename = "output.validated")]
    OutputValidated,
    #[serde(rename = "message.added")]
    MessageAdded {
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A streamed fragment, under its own name.
    #[serde(untagged)]
    Fragment {
        #[serde(flatten)]
        delta: Delta,
        /// The attempt at the model that streams it; absent for the progress of a call.
        #[serde(flatten)]
        from: Option<FragmentSource>,
    },
}

impl LifecycleKind {
    /// The name of the kind in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "execution.started",
            Self::Resumed { .. } => "execution.resumed",
            Self::Pending { .. } => "execution.pending",
            Self::CompensationStarted { .. } => "compensation.started",
            Self::Paused { .. } => "execution.paused",
            Self::Unpaused { .. } => "execution.unpaused",
            Self::Completed { .. } => "execution.completed",
            Self::Failed { .. } => "execution.failed",
            Self::Incomplete { .. } => "execution.incomplete",
            Self::Expired { .. } => "execution.expired",
            Self::Cancelled { .. } => "execution.cancelled",
            Self::ContextBuildStarted => "context.build.started",
            Self::ContextBuildSuccess => "context.build.success",
            Self::ServerAuth { .. } => "server.auth",
            Self::ToolsListed { .. } => "tools.listed",
            Self::ApprovalsResolved { .. } => "approvals.resolved",
            Self::ModelCalled { .. } => "llm.call.started",
            Self::ModelRetrying { .. } => "llm.call.retrying",
            Self::ModelReplied { .. } => "llm.call.completed",
            Self::ModelCallRefused { .. } => "llm.call.refused",
            Self::ModelFailed { .. } => "llm.call.failed",
            Self::CompactionStarted { .. } => "conversation.compaction.started",
            Self::CompactionCompleted { .. } => "conversation.compaction.completed",
            Self::CompactionFailed { .. } => "conversation.compaction.failed",
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
            Self::Fragment { delta: Delta::Text { .. }, .. } => "llm.text.delta",
            Self::Fragment { delta: Delta::Reasoning { .. }, .. } => "llm.reasoning.delta",
            Self::Fragment { delta: Delta::Progress { .. }, .. } => "tool.mcp.progress",
        }
    }
}
