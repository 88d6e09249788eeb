//! Events of tool calls.

use utoipa::ToSchema;

use crate::closed_sets::{ChannelView, RejectionView};
use crate::runs::events::members::{CallEndView, CallView, ChangedView, ProblemView};

/// Events of tool calls.
#[derive(ToSchema)]
#[schema(as = ToolEventKind)]
#[serde(tag = "type")]
#[allow(dead_code)] // the lifecycle writes it; this describes what it writes
pub(crate) enum ToolEvents {
    /// The calls of a reply that run now, and those that are deferred.
    #[serde(rename = "tool.tier.selected")]
    TierSelected {
        /// The priority of the calls that run.
        priority: i32,
        /// The ids of the calls that run.
        run: Vec<String>,
        /// The ids of the calls that are deferred.
        deferred: Vec<String>,
    },
    /// A call is sent to its MCP server.
    #[serde(rename = "tool.mcp.executing")]
    McpExecuting {
        #[serde(flatten)]
        call: CallView,
        /// The grant that covers the call in place of an approval.
        #[schema(nullable = false)]
        grant_id: Option<String>,
    },
    /// An MCP call ended.
    #[serde(rename = "tool.mcp.completed")]
    McpCompleted {
        #[serde(flatten)]
        call: CallView,
        /// The duration of the call, in milliseconds, if it was sent.
        duration_ms: Option<u64>,
        #[serde(flatten)]
        end: CallEndView,
        /// Where the structured result does not match the tool's output schema.
        problems: Vec<ProblemView>,
        /// Lines that the server wrote to stderr during a call that failed; only with content.
        #[schema(nullable = false)]
        stderr: Option<Vec<String>>,
    },
    /// The server reports progress. Sent live only.
    #[serde(rename = "tool.mcp.progress")]
    Progress {
        /// The id of the call.
        call_id: String,
        /// The progress so far.
        progress: f64,
        /// The total, if it is known.
        total: Option<f64>,
        /// The server's message; only with content.
        #[schema(nullable = false)]
        message: Option<String>,
    },
    /// toolgate executes a call itself.
    #[serde(rename = "tool.builtin.executing")]
    BuiltinExecuting {
        #[serde(flatten)]
        call: CallView,
    },
    /// toolgate executed a call.
    #[serde(rename = "tool.builtin.completed")]
    BuiltinCompleted {
        #[serde(flatten)]
        call: CallView,
        /// The duration of the call, in milliseconds.
        duration_ms: Option<u64>,
        #[serde(flatten)]
        end: CallEndView,
    },
    /// The server requests input on the open call, which is held for the answer.
    #[serde(rename = "tool.input.requested")]
    InputRequested {
        #[serde(flatten)]
        call: CallView,
        /// The server's keys of its requests.
        asks: Vec<String>,
        /// The texts of the requests, in the same order; only with content.
        #[schema(nullable = false)]
        messages: Option<Vec<String>>,
        /// Until when the call is held.
        #[schema(format = DateTime)]
        held_until: Option<String>,
    },
    /// The server requires input first, and the run is pending.
    #[serde(rename = "tool.input.required")]
    InputRequired {
        #[serde(flatten)]
        call: CallView,
        /// The server's keys of its requests.
        asks: Vec<String>,
        /// The texts of the requests, in the same order; only with content.
        #[schema(nullable = false)]
        messages: Option<Vec<String>>,
        /// Whether the call starts again from its beginning.
        restarts: bool,
        /// Whether repeating the call requires explicit consent, because it had begun.
        repeats: bool,
    },
    /// The server's requests were answered, or declined.
    #[serde(rename = "tool.input.given")]
    InputGiven {
        #[serde(flatten)]
        call: CallView,
        /// The person who answered.
        by: String,
        /// Where the answer was given.
        via: ChannelView,
        /// Whether any of the requests was answered, rather than declined or cancelled.
        accepted: bool,
    },
    /// The server continues the call as a task.
    #[serde(rename = "tool.task.started")]
    TaskStarted {
        #[serde(flatten)]
        call: CallView,
        /// The server's id of the task.
        task_id: String,
        /// The polling interval that the server asks for, in milliseconds.
        poll_ms: Option<u64>,
    },
    /// A call waits for your application.
    #[serde(rename = "tool.external.requested")]
    ExternalRequested {
        #[serde(flatten)]
        call: CallView,
    },
    /// Your application returned the result.
    #[serde(rename = "tool.external.completed")]
    ExternalCompleted {
        #[serde(flatten)]
        call: CallView,
        #[serde(flatten)]
        end: CallEndView,
    },
    /// A call was rejected and did not run.
    #[serde(rename = "tool.rejected")]
    Rejected {
        #[serde(flatten)]
        call: CallView,
        /// Why the call was rejected.
        reason: RejectionView,
        /// The text that the model reads; only with content.
        #[schema(nullable = false)]
        message: Option<String>,
    },
    /// The tool budget is used up; sent in each turn from then on.
    #[serde(rename = "tool.budget.exhausted")]
    BudgetExhausted {
        /// Turns with tools, and rejected answers.
        used: u32,
        /// The limit of such turns.
        max: u32,
    },
    /// A call differs from what was approved, and is checked again.
    #[serde(rename = "tool.drifted")]
    Drifted {
        #[serde(flatten)]
        call: CallView,
        /// The parts that differ, in words.
        changed: Vec<String>,
        /// The differences; only with content.
        #[schema(nullable = false)]
        differences: Option<Vec<ChangedView>>,
    },
}
