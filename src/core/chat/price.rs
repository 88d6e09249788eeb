//! Token prices and costs. A price is configuration; a cost is a fact: it is calculated once, when a reply arrives, and
//! stored with its usage.

use serde::Deserialize;

use super::{Costs, Usage, Usd};

/// The prices of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Price {
    /// Rates of requests of usual length.
    #[serde(flatten)]
    pub rates: Rates,
    /// Rates of longer requests, for all of their tokens, where they differ.
    #[serde(default)]
    pub long_context: Option<LongContext>,
    /// US dollars for a generated image, in addition to its tokens.
    #[serde(default)]
    pub image: Option<Usd>,
}

/// US dollars per million tokens of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Rates {
    /// Input tokens.
    pub input: Usd,
    /// Output tokens.
    pub output: Usd,
    /// Input tokens read from the provider's cache; `None` if they have the price of other input tokens.
    #[serde(default)]
    pub cache_read: Option<Usd>,
    /// Input tokens written to the provider's cache; `None` if they have the price of other input tokens.
    #[serde(default)]
    pub cache_write: Option<Usd>,
    /// Reasoning tokens; `None` if they have the price of other output tokens.
    #[serde(default)]
    pub reasoning: Option<Usd>,
}

/// Rates of requests whose input exceeds a number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct LongContext {
    /// The number of input tokens above which these rates apply, to all tokens of the request.
    pub above: u64,
    #[serde(flatten)]
    pub rates: Rates,
}

impl Price {
    /// Fills in the cost of one request that generated so many images, unless the provider reported a cost.
    pub fn complete(&self, usage: &mut Usage, images: usize) {
        if usage.cost_usd.is_none() {
            usage.costs = self.costs(usage, images);
            usage.cost_usd = usage.costs.as_ref().map(Costs::total);
        }
    }

    /// The cost of one request in US dollars. `None` if the token counts are unknown, unless the tokens are free
    /// anyway.
    pub fn cost(&self, usage: &Usage, images: usize) -> Option<Usd> {
        self.costs(usage, images).as_ref().map(Costs::total)
    }

    /// The parts of the cost; images are part of the output.
    fn costs(&self, usage: &Usage, images: usize) -> Option<Costs> {
        let is_free = self.image.is_some() && self.rates.input == Usd::ZERO && self.rates.output == Usd::ZERO;
        let tokens = self.costs_of_tokens(usage).or_else(|| is_free.then(Costs::default))?;
        Some(Costs { output: tokens.output + self.image.unwrap_or_default() * images as u64, ..tokens })
    }

    /// Token kinds without a count are taken as zero.
    fn costs_of_tokens(&self, usage: &Usage) -> Option<Costs> {
        let (input, output) = usage.input_tokens.zip(usage.output_tokens)?;
        let rates = self.rates_for(input);
        // Providers contradict themselves at times: a part is never more than the whole.
        let read = usage.cache_read_tokens.unwrap_or(0).min(input);
        let write = usage.cache_write_tokens.unwrap_or(0).min(input - read);
        let reasoning = usage.reasoning_tokens.unwrap_or(0).min(output);
        Some(Costs {
            input: rates.input.per_million(input - read - write),
            cache_read: rates.cache_read.unwrap_or(rates.input).per_million(read),
            cache_write: rates.cache_write.unwrap_or(rates.input).per_million(write),
            output: rates.output.per_million(output - reasoning),
            reasoning: rates.reasoning.unwrap_or(rates.output).per_million(reasoning),
        })
    }

    fn rates_for(&self, input: u64) -> &Rates {
        match &self.long_context {
            Some(long) if input > long.above => &long.rates,
            Some(_) | None => &self.rates,
        }
    }
}
