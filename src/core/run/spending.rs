//! Spending of a run: the effect of a hard limit, and the worst case of a model call. `spending_fold` has the effects on
//! a run.

use serde::{Deserialize, Serialize};

use crate::chat::{Usage, Usd};

/// The effect of a hard limit: `max_iterations`, `max_tokens` or `max_cost_usd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExceed {
    /// The model gives a last answer without tools, and the run ends as `incomplete`.
    #[default]
    LastWord,
    /// The run ends as `incomplete` at once.
    Fail,
    /// The run is paused. It continues with raised limits, or else with a last answer.
    Ask,
    /// The run continues beyond `max_tokens` and `max_cost_usd`, and its result has a warning.
    Warn,
}

/// The worst case of a model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallEstimate {
    /// Input tokens: the conversation as the provider counted it last, and about four bytes a token for the rest.
    pub input_tokens: u64,
    /// The output limit of the request, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The cost of both, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
}

impl OnExceed {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether an attempt used tokens or money.
pub(super) fn is_charged(usage: &Usage) -> bool {
    usage.total_tokens().is_some_and(|tokens| tokens > 0) || usage.cost_usd.is_some_and(|cost| cost > Usd::ZERO)
}
