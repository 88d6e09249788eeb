//! Events of the run itself, and of what it starts with: its servers, tools and context.

use utoipa::ToSchema;

use crate::closed_sets::{AuthorizationView, ChannelView, RestartView};
use crate::runs::events::members::{PendingRefView, RunLimitsView, SkippedView, ToolGrantView, UndoRefView};
use crate::runs::failure::FailureView;
use crate::runs::usage::UsageView;
use crate::runs::view::{IncompleteView, OutputView, StatusView, WarningView};

/// Events of the run itself, and of what it starts with: its servers, tools and context.
#[derive(ToSchema)]
#[schema(as = RunEventKind)]
#[serde(tag = "type")]
#[allow(dead_code)] // the lifecycle writes it; this describes what it writes
pub(crate) enum RunEvents {
    /// The run was created.
    #[serde(rename = "execution.started")]
    Started {
        /// The run's agent.
        agent: String,
        /// The model that the run asks first.
        model: String,
        /// The session of the run.
        session_id: String,
        /// The trace of the execution.
        trace_id: String,
        /// The user's message; only with content.
        #[schema(nullable = false)]
        input: Option<String>,
        /// Why the run does not continue the conversation of its session.
        restart: Option<RestartView>,
    },
    /// The run was resumed.
    #[serde(rename = "execution.resumed")]
    Resumed {
        /// The trace of the execution.
        trace_id: String,
    },
    /// The run is pending. `pending[]` of the run has all the data that an answer needs.
    #[serde(rename = "execution.pending")]
    Pending {
        /// The pending items.
        pending: Vec<PendingRefView>,
    },
    /// The run was paused: it stops after its step in progress.
    #[serde(rename = "execution.paused")]
    Paused {
        /// The person or program that paused the run.
        by: String,
        /// Where the run was paused.
        via: ChannelView,
        /// The reason, if one was given.
        reason: Option<String>,
    },
    /// The pause ended.
    #[serde(rename = "execution.unpaused")]
    Unpaused {
        /// The person or program that continued the run.
        by: String,
        /// Where the run was continued.
        via: ChannelView,
        /// The limits of the run from now on, if they changed.
        limits: Option<RunLimitsView>,
    },
    /// The run ended with a valid answer.
    #[serde(rename = "execution.completed")]
    Completed {
        /// Turns with tools, and rejected answers.
        tool_interactions: u32,
        /// Tokens and cost of the run.
        usage: UsageView,
        /// The answer; only with content.
        #[schema(nullable = false)]
        output: Option<OutputView>,
        /// Warnings about the result.
        warnings: Vec<WarningView>,
    },
    /// The run ended with an error.
    #[serde(rename = "execution.failed")]
    Failed {
        /// The error.
        error: FailureView,
        /// Turns with tools, and rejected answers.
        tool_interactions: u32,
        /// Tokens and cost of the run.
        usage: UsageView,
    },
    /// The run ended at a hard limit.
    #[serde(rename = "execution.incomplete")]
    Incomplete {
        /// The error.
        error: FailureView,
        /// Why the run is incomplete.
        incomplete_details: IncompleteView,
        /// Turns with tools, and rejected answers.
        tool_interactions: u32,
        /// Tokens and cost of the run.
        usage: UsageView,
        /// The last answer, null without one; only with content.
        output: Option<OutputView>,
    },
    /// The run waited too long for a required action.
    #[serde(rename = "execution.expired")]
    Expired {
        /// The error.
        error: FailureView,
        /// Turns with tools, and rejected answers.
        tool_interactions: u32,
        /// Tokens and cost of the run.
        usage: UsageView,
    },
    /// A caller cancelled the run.
    #[serde(rename = "execution.cancelled")]
    Cancelled {
        /// The reason, if one was given.
        reason: Option<String>,
        /// The text of the reply that the cancellation stopped, as far as the model had streamed it; only with content.
        #[schema(nullable = false)]
        partial_reply: Option<String>,
        /// Turns with tools, and rejected answers.
        tool_interactions: u32,
        /// Tokens and cost of the run.
        usage: UsageView,
    },
    /// The run will end, and first undoes the calls that took effect.
    #[serde(rename = "compensation.started")]
    CompensationStarted {
        /// The status that the run will have.
        status: StatusView,
        /// The undo calls, in order.
        undo: Vec<UndoRefView>,
    },
    /// The context of a turn is being built.
    #[serde(rename = "context.build.started")]
    ContextBuildStarted,
    /// The context was built.
    #[serde(rename = "context.build.success")]
    ContextBuildSuccess,
    /// The authorization status of an MCP server, or a change of it.
    #[serde(rename = "server.auth")]
    ServerAuth {
        /// The configured id of the server.
        server: String,
        /// The status.
        status: AuthorizationView,
        /// The cause and the remedy, unless the status is `authorized`.
        reason: Option<String>,
    },
    /// The tools that are available to the model from now on.
    #[serde(rename = "tools.listed")]
    ToolsListed {
        /// The tools, by the names that the model sees.
        tools: Vec<String>,
        /// Tools and servers that are not available.
        skipped: Vec<SkippedView>,
        /// Tools whose definition differs from the one that the run saw first.
        changed: Vec<String>,
        /// Rules and patterns of the configuration that match no tool.
        warnings: Vec<String>,
    },
    /// The tools that require approval and are covered by a grant in this turn.
    #[serde(rename = "approvals.resolved")]
    ApprovalsResolved {
        /// The tools, with their grants.
        granted: Vec<ToolGrantView>,
    },
    /// A message was added to the run.
    #[serde(rename = "message.added")]
    MessageAdded {
        /// The text; only with content.
        #[schema(nullable = false)]
        text: Option<String>,
    },
}
