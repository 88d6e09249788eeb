//! Limits of a single run.

use serde::Deserialize;
use utoipa::ToSchema;

/// Limits of a run, which may only be tighter than the agent's. Limits that are left out are the agent's.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Limits)]
#[allow(dead_code)] // the core reads it; this describes what it reads
pub(super) struct LimitsDescription {
    /// Turns with tools, and rejected answers. When the limit is reached, the model answers with what it has.
    max_tool_interactions: Option<u32>,
    /// Turns of the model.
    max_iterations: Option<u32>,
    /// Calls sent to MCP servers.
    max_mcp_calls: Option<u32>,
    /// Input and output tokens.
    max_tokens: Option<u64>,
    /// US dollars.
    max_cost_usd: Option<f64>,
    /// Seconds from the start, including pending time.
    deadline_s: Option<u64>,
    /// Consecutive turns without a usable result.
    max_corrections: Option<u32>,
    /// Attempts at one model call.
    max_attempts: Option<u32>,
    /// Bytes of text that one result adds to the messages.
    max_result_bytes: Option<u64>,
}
