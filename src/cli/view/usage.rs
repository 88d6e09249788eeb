//! Usage of model calls, as text and as JSON. Unreported usage is shown as unknown, never as zero.

use serde::Serialize;

use crate::core::chat::{Usage, Usd};
use crate::core::lifecycle;

/// The tokens and the cost of one attempt, as far as they are known; `None` if neither is.
pub(in crate::cli) fn reported_usage(usage: &Usage) -> Option<String> {
    let parts = [usage.total_tokens().map(|_| tokens(usage)), usage.cost_usd.map(dollars)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Tokens and cost of several attempts, some of which may not have reported their usage:
/// `120 (100 cached) → 30 (10 reasoning) tokens, $0.0012`.
pub(in crate::cli) fn total(usage: &Usage, gaps: MissingUsage) -> String {
    let tokens = usage.total_tokens().map(|_| format!("{}{}", at_least(gaps.tokens), tokens(usage)));
    let cost = usage.cost_usd.map(|cost| format!("{}{}", at_least(gaps.cost), dollars(cost)));
    match (tokens, cost) {
        (None, None) => "usage unknown".into(),
        (tokens, cost) => {
            let [tokens, cost] =
                [(tokens, "tokens"), (cost, "cost")].map(|(part, what)| part.unwrap_or(format!("{what} unknown")));
            format!("{tokens}, {cost}")
        }
    }
}

/// Whether attempts did not report their usage, so that the total is too low.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct MissingUsage {
    tokens: bool,
    cost: bool,
}

impl MissingUsage {
    /// Adds the usage of a reply.
    pub(in crate::cli) fn replied(&mut self, usage: &Usage) {
        self.tokens |= usage.input_tokens.is_none() || usage.output_tokens.is_none();
        self.cost |= usage.cost_usd.is_none();
    }

    /// Whether an attempt did not report its cost.
    pub(in crate::cli) fn in_cost(self) -> bool {
        self.cost
    }

    /// Adds the usage of a failed attempt. Most failed attempts use no tokens and report no usage.
    pub(in crate::cli) fn failed(&mut self, usage: &Usage) {
        if usage.total_tokens().is_some() {
            self.replied(usage);
        }
    }
}

/// Usage as JSON, in the form that it has in events and over HTTP.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub(in crate::cli) struct UsageJson(#[serde(serialize_with = "lifecycle::usage")] Usage);

impl From<Usage> for UsageJson {
    fn from(usage: Usage) -> Self {
        Self(usage)
    }
}

/// Tokens without cost: `120 (100 cached) → 30 tokens`.
pub(in crate::cli) fn tokens(usage: &Usage) -> String {
    let part =
        |tokens: Option<u64>, what: &str| tokens.filter(|tokens| *tokens > 0).map(|tokens| format!("{tokens} {what}"));
    let read = [part(usage.cache_read_tokens, "cached"), part(usage.cache_write_tokens, "written to the cache")];
    let written = [part(usage.reasoning_tokens, "reasoning")];
    format!("{} → {} tokens", whole(usage.input_tokens, &read), whole(usage.output_tokens, &written))
}

fn whole(tokens: Option<u64>, parts: &[Option<String>]) -> String {
    let whole = tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
    let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
    if parts.is_empty() { whole } else { format!("{whole} ({})", parts.join(", ")) }
}

/// The cost in a list; `-` if it is unknown.
pub(in crate::cli) fn cost(usage: &Usage, gaps: MissingUsage) -> String {
    usage.cost_usd.map_or_else(|| "-".to_owned(), |cost| format!("{}{}", at_least(gaps.cost), dollars(cost)))
}

/// A dollar amount with four decimals, or more if four would round a small amount to zero.
pub(in crate::cli) fn dollars(amount: Usd) -> String {
    let amount = amount.dollars();
    let places = (4..12).find(|places| amount == 0.0 || amount.abs() >= 10_f64.powi(1 - places)).unwrap_or(12);
    format!("${amount:.*}", usize::try_from(places).unwrap_or(4))
}

fn at_least(is_partial: bool) -> &'static str {
    if is_partial { "at least " } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Usage = Usage {
        input_tokens: Some(120),
        output_tokens: Some(30),
        cache_read_tokens: Some(100),
        cache_write_tokens: Some(8),
        reasoning_tokens: Some(10),
        cost_usd: Some(Usd::from_picodollars(1_200_000_000)),
        costs: None,
    };

    fn spent(usage: &Usage) -> String {
        total(usage, MissingUsage::default())
    }

    #[test]
    fn all_token_parts_are_shown_with_their_total() {
        assert_eq!(spent(&ALL), "120 (100 cached, 8 written to the cache) → 30 (10 reasoning) tokens, $0.0012");
        let plain = Usage { cache_read_tokens: Some(0), cache_write_tokens: None, reasoning_tokens: Some(0), ..ALL };
        assert_eq!(spent(&plain), "120 → 30 tokens, $0.0012");
    }

    #[test]
    fn unknown_usage_is_not_shown_as_zero() {
        assert_eq!(spent(&Usage::default()), "usage unknown");
        assert_eq!(spent(&Usage { input_tokens: Some(12), ..Usage::default() }), "12 → ? tokens, cost unknown");
        assert_eq!(spent(&Usage { cost_usd: Some(Usd::ZERO), ..Usage::default() }), "tokens unknown, $0.0000");
        let json = serde_json::to_value(UsageJson::from(Usage { cost_usd: None, ..ALL })).unwrap();
        assert_eq!(json["cost_usd"], serde_json::Value::Null);
        assert!(json.as_object().unwrap().contains_key("cost_usd"));
    }

    #[test]
    fn a_total_with_gaps_is_shown_as_a_minimum() {
        let mut gaps = MissingUsage::default();
        gaps.failed(&Usage::default());
        gaps.replied(&ALL);
        assert_eq!(total(&ALL, gaps), spent(&ALL), "an attempt that used nothing leaves no gap");
        gaps.failed(&Usage { input_tokens: Some(5), ..Usage::default() });
        let sum = Usage { cache_read_tokens: None, cache_write_tokens: None, reasoning_tokens: None, ..ALL };
        assert_eq!(total(&sum, gaps), "at least 120 → 30 tokens, at least $0.0012");
    }

    #[test]
    fn a_small_amount_is_not_shown_as_zero() {
        let amounts = [0.0, 12.5, 0.05, 0.00123, 0.00001234].map(|amount| Usd::try_from(amount).unwrap());
        let shown = amounts.map(dollars);
        assert_eq!(shown, ["$0.0000", "$12.5000", "$0.0500", "$0.0012", "$0.000012"]);
    }
}
