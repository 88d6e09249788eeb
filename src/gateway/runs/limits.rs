//! Limits of one run, as a request says them.

use serde::Deserialize;
use utoipa::ToSchema;

/// Limits tighter than the agent's; what is not said stays as it is, and what is wider is refused.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Limits)]
#[allow(dead_code)] // the core reads it; this describes what it reads
pub(super) struct LimitsDescription {
    /// Turns with tools, and rejected answers; then the model answers with what it has.
    max_tool_interactions: Option<u32>,
    /// Turns of the model.
    max_iterations: Option<u32>,
    /// Calls sent to MCP servers.
    max_mcp_calls: Option<u32>,
    /// Tokens read and written.
    max_tokens: Option<u64>,
    /// US dollars.
    max_cost_usd: Option<f64>,
    /// Seconds from the start, waiting included.
    deadline_s: Option<u64>,
    /// Turns in a row that bring nothing usable.
    max_corrections: Option<u32>,
    /// Attempts at one call of the model.
    max_attempts: Option<u32>,
    /// Bytes of text that one result brings into the conversation.
    max_result_bytes: Option<u64>,
}
