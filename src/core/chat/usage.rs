//! Token usage and cost. Unknown figures stay unknown.

use serde::{Deserialize, Serialize};

use super::Usd;

/// The usage of one or more model calls. `None` means that the provider did not report it; it is never read as zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Part of `input_tokens` that came from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Part of `input_tokens` that was written to the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Part of `output_tokens` that was reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Price in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
    /// The parts of the cost, where toolgate calculated it. A provider that reports a cost reports one sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
}

/// The parts of a cost, in US dollars. Their sum is the whole cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// Input tokens that were neither read from nor written to the cache.
    pub input: Usd,
    /// Input tokens read from the provider's cache.
    pub cache_read: Usd,
    /// Input tokens written to the provider's cache.
    pub cache_write: Usd,
    /// Output tokens without reasoning.
    pub output: Usd,
    /// Reasoning tokens.
    pub reasoning: Usd,
}

impl Costs {
    /// The cost of the whole input.
    pub fn prompt(&self) -> Usd {
        self.input + self.cache_read + self.cache_write
    }

    /// The cost of the whole output.
    pub fn completion(&self) -> Usd {
        self.output + self.reasoning
    }

    /// The whole cost.
    pub fn total(&self) -> Usd {
        self.input + self.cache_read + self.cache_write + self.output + self.reasoning
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input + other.input,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            output: self.output + other.output,
            reasoning: self.reasoning + other.reasoning,
        }
    }
}

impl Usage {
    /// Whether no figure is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Adds another call's usage. A known figure plus an unknown one is the known figure.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: &mut Option<u64>, b: Option<u64>| {
            if let Some(b) = b {
                *a = Some(a.unwrap_or(0).saturating_add(b));
            }
        };
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.cache_read_tokens, other.cache_read_tokens);
        sum(&mut self.cache_write_tokens, other.cache_write_tokens);
        sum(&mut self.reasoning_tokens, other.reasoning_tokens);
        // The parts are kept only as long as their sum is the whole cost.
        self.costs = match (self.cost_usd, other.cost_usd) {
            (_, None) => self.costs,
            (None, Some(_)) => other.costs,
            (Some(_), Some(_)) => self.costs.zip(other.costs).map(|(one, other)| one.plus(&other)),
        };
        if let Some(cost) = other.cost_usd {
            // A negative price would lower a cost that has already reached its limit.
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost.max(Usd::ZERO));
        }
    }

    /// The usage added since `before`.
    pub fn since(&self, before: &Self) -> Self {
        let tokens = |now: Option<u64>, before: Option<u64>| now.map(|now| now.saturating_sub(before.unwrap_or(0)));
        Self {
            input_tokens: tokens(self.input_tokens, before.input_tokens),
            output_tokens: tokens(self.output_tokens, before.output_tokens),
            cache_read_tokens: tokens(self.cache_read_tokens, before.cache_read_tokens),
            cache_write_tokens: tokens(self.cache_write_tokens, before.cache_write_tokens),
            reasoning_tokens: tokens(self.reasoning_tokens, before.reasoning_tokens),
            cost_usd: self.cost_usd.map(|now| (now - before.cost_usd.unwrap_or_default()).max(Usd::ZERO)),
            costs: None,
        }
    }

    /// Input and output tokens, as far as they are known.
    pub fn total_tokens(&self) -> Option<u64> {
        match (self.input_tokens, self.output_tokens) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(cost_usd: Option<Usd>, costs: Option<Costs>) -> Usage {
        Usage { cost_usd, costs, ..Usage::default() }
    }

    #[test]
    fn cost_parts_are_kept_only_while_they_are_complete() {
        let [quarter, half, three_quarters] = [1, 2, 3].map(|quarters| Usd::try_from(0.25).unwrap() * quarters);
        let parts = Costs { input: half, reasoning: quarter, ..Costs::default() };
        let mut both = Usage::default();
        both.add(&used(Some(three_quarters), Some(parts)));
        both.add(&used(None, None));
        both.add(&used(Some(three_quarters), Some(parts)));
        assert_eq!(
            both,
            used(Some(three_quarters * 2), Some(Costs { input: half * 2, reasoning: half, ..Costs::default() }))
        );

        both.add(&used(Some(quarter), None));
        assert_eq!(both.costs, None, "the provider reported a sum");
        both.add(&used(Some(three_quarters), Some(parts)));
        assert_eq!(both.costs, None, "the sum still contains that report");
    }
}
