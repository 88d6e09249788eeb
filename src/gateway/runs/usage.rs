//! The API views of what a run has used: tokens, cost, and its limits.

use serde::Serialize;
use toolgate_core::chat::{Usage, Usd};
use toolgate_core::run::Budget;
use utoipa::ToSchema;

/// Tokens and cost. A value that the provider did not report is null; it is never zero for that reason.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
pub(crate) struct UsageView {
    /// Input tokens, including cached ones.
    input_tokens: Option<u64>,
    /// Output tokens, including reasoning.
    output_tokens: Option<u64>,
    /// Input tokens that were read from the provider's cache.
    cache_read_tokens: Option<u64>,
    /// Input tokens that were written to the provider's cache.
    cache_write_tokens: Option<u64>,
    /// Output tokens for reasoning.
    reasoning_tokens: Option<u64>,
    /// The cost in US dollars, as decimal text.
    #[schema(value_type = Option<String>, example = "0.0213")]
    cost_usd: Option<Usd>,
}

/// Usage of a run's limits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Budget)]
pub(crate) struct BudgetView {
    /// Turns with tools, and rejected answers.
    tool_interactions: u32,
    /// The limit of such turns.
    max_tool_interactions: u32,
    /// Turns of the model.
    iterations: u32,
    /// The limit of turns.
    max_iterations: u32,
    /// Calls sent to MCP servers.
    mcp_calls: u32,
    /// The limit of such calls, if there is one.
    max_mcp_calls: Option<u32>,
    /// Whether the limits allow no more tool calls.
    exhausted: bool,
}

impl UsageView {
    pub(crate) fn new(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_usd: usage.cost_usd,
        }
    }
}

impl BudgetView {
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            tool_interactions: budget.tool_interactions,
            max_tool_interactions: budget.limits.max_tool_interactions,
            iterations: budget.iterations,
            max_iterations: budget.limits.max_iterations,
            mcp_calls: budget.mcp_calls,
            max_mcp_calls: budget.limits.max_mcp_calls,
            exhausted: budget.is_exhausted(),
        }
    }
}
