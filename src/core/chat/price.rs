//! Token prices and costs. A price is configuration; a cost is a fact: it is calculated once, when a reply arrives, and
//! stored with its usage.

use serde::Deserialize;

use super::{Costs, Usage};

const MILLION: f64 = 1_000_000.0;

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
    pub image: Option<f64>,
}

/// US dollars per million tokens of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Rates {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Input tokens read from the provider's cache; `None` if they have the price of other input tokens.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Input tokens written to the provider's cache; `None` if they have the price of other input tokens.
    #[serde(default)]
    pub cache_write: Option<f64>,
    /// Reasoning tokens; `None` if they have the price of other output tokens.
    #[serde(default)]
    pub reasoning: Option<f64>,
}

/// Rates of requests whose input exceeds a number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct LongContext {
    /// The number of input tokens above which these rates apply, to all tokens of the request.
    pub above: u64,
    /// The rates.
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
    pub fn cost(&self, usage: &Usage, images: usize) -> Option<f64> {
        self.costs(usage, images).as_ref().map(Costs::total)
    }

    /// The parts of the cost; images are part of the output.
    fn costs(&self, usage: &Usage, images: usize) -> Option<Costs> {
        let is_free = self.image.is_some() && self.rates.input == 0.0 && self.rates.output == 0.0;
        let tokens = self.costs_of_tokens(usage).or_else(|| is_free.then(Costs::default))?;
        Some(Costs { output: tokens.output + self.image.unwrap_or(0.0) * images as f64, ..tokens })
    }

    /// Token kinds without a count are taken as zero.
    fn costs_of_tokens(&self, usage: &Usage) -> Option<Costs> {
        let (input, output) = usage.input_tokens.zip(usage.output_tokens)?;
        let rates = self.rates_for(input);
        // Providers contradict themselves at times: a part is never more than the whole.
        let read = usage.cache_read_tokens.unwrap_or(0).min(input);
        let write = usage.cache_write_tokens.unwrap_or(0).min(input - read);
        let reasoning = usage.reasoning_tokens.unwrap_or(0).min(output);
        let of = |tokens: u64, rate: f64| tokens as f64 * rate / MILLION;
        Some(Costs {
            input: of(input - read - write, rates.input),
            cache_read: of(read, rates.cache_read.unwrap_or(rates.input)),
            cache_write: of(write, rates.cache_write.unwrap_or(rates.input)),
            output: of(output - reasoning, rates.output),
            reasoning: of(reasoning, rates.reasoning.unwrap_or(rates.output)),
        })
    }

    fn rates_for(&self, input: u64) -> &Rates {
        match &self.long_context {
            Some(long) if input > long.above => &long.rates,
            Some(_) | None => &self.rates,
        }
    }
}
