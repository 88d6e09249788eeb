//! The API views of what a run has used: tokens, cost, and its limits.

use serde::Serialize;
use toolgate_core::run::Budget;
use utoipa::ToSchema;

/// Tokens and cost. A value that the provider did not report is null; it is never zero for that reason.
#[derive(ToSchema)]
#[schema(as = Usage)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(crate) struct UsageView {
    /// Input tokens, including cached ones.
    input_tokens: Option<u64>,
    /// Output tokens, including reasoning.
    output_tokens: Option<u64>,
    /// Input and output tokens.
    total_tokens: Option<u64>,
    /// Input tokens that were read from the provider's cache.
    cache_read_tokens: Option<u64>,
    /// Input tokens that were written to the provider's cache.
    cache_write_tokens: Option<u64>,
    /// Output tokens for reasoning.
    reasoning_tokens: Option<u64>,
    /// The cost in US dollars, as decimal text.
    #[schema(example = "0.0213")]
    cost_usd: Option<String>,
    /// The parts of the cost, if toolgate calculated it; their sum is `cost_usd`.
    costs: Option<CostsView>,
}

/// The parts of a cost in US dollars, as decimal text.
#[derive(ToSchema)]
#[schema(as = Costs)]
#[allow(dead_code)] // core writes it; this describes what it writes
struct CostsView {
    /// Input tokens that were neither read from nor written to the cache.
    input: String,
    /// Input tokens that were read from the cache.
    cache_read: String,
    /// Input tokens that were written to the cache.
    cache_write: String,
    /// Output tokens without reasoning.
    output: String,
    /// Output tokens for reasoning.
    reasoning: String,
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
