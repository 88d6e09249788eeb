//! Steps of a run.

use super::{Ending, Event, PendingItem, ToolAccess};
use crate::error::Failure;
use crate::id::CallId;
use crate::tool::ToolName;

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Append these events; they follow from the journal alone.
    Record(Vec<Event>),
    /// List the available tools, and record `tools.listed`.
    ListTools,
    /// Ask the approval cache which of these guarded tools are granted, and record `approvals.resolved`.
    ResolveApprovals(Vec<ToolName>),
    /// Record `llm.call.started`, call the model that [`Run::candidate`](super::Run::candidate) names, record the result.
    CallModel {
        /// 1 for the first attempt of the turn.
        attempt: u32,
        /// Whether tools may be called.
        tool_access: ToolAccess,
        /// The failure of the previous attempt at the same model, after which the driver waits before the retry.
        after: Option<Failure>,
    },
    /// Record `compaction.started`, call the model that [`Run::compaction_model`](super::Run::compaction_model) names for
    /// a summary of [`Run::replaced`](super::Run::replaced), record the result.
    Compact {
        /// 1 for the first attempt.
        attempt: u32,
        /// The number of messages that the summary replaces.
        replaces: u64,
        /// The number of messages after them.
        keeps: u64,
    },
    /// Check this final answer, and record `output.validated`.
    ValidateOutput(String),
    /// Check arguments and policy of these calls, and record `tool.checked` for each.
    CheckCalls(Vec<CallId>),
    /// Record `tool.started` for these calls, make them concurrently, record each result as it arrives.
    RunTier(Vec<CallId>),
    /// Stop here. The run continues when these items are answered.
    Wait(Vec<PendingItem>),
    /// Nothing; the run is over.
    Done(Ending),
}
