//! What tokens cost. A price is configuration, a cost is a fact: it is worked out once, when a reply arrives, and kept
//! with the usage it belongs to.

use serde::Deserialize;

use super::{Costs, Usage};

const MILLION: f64 = 1_000_000.0;

/// What a model charges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Price {
    /// For a request of usual length.
    #[serde(flatten)]
    pub rates: Rates,
    /// For every token of a request that is longer than that, where it differs.
    #[serde(default)]
    pub long_context: Option<LongContext>,
    /// US dollars for an image that is made, besides its tokens.
    #[serde(default)]
    pub image: Option<f64>,
}

/// US dollars for a million tokens of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Rates {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read that came from the provider's cache; `None` if they cost what others cost.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Tokens read that were written to the provider's cache; `None` if they cost what others cost.
    #[serde(default)]
    pub cache_write: Option<f64>,
    /// Tokens of reasoning; `None` if they cost what other written tokens cost.
    #[serde(default)]
    pub reasoning: Option<f64>,
}

/// Rates of requests that read more than a number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct LongContext {
    /// They hold for requests that read more than so many tokens, for all tokens of the request.
    pub above: u64,
    /// The rates.
    #[serde(flatten)]
    pub rates: Rates,
}

impl Price {
    /// Fills in what one request cost that made so many images, unless the provider told what it charged.
    pub fn complete(&self, usage: &mut Usage, images: usize) {
        if usage.cost_usd.is_none() {
            usage.costs = self.costs(usage, images);
            usage.cost_usd = usage.costs.as_ref().map(Costs::total);
        }
    }

    /// What one request cost, in US dollars. `None` if it is not known how much was read and written, unless that costs
    /// nothing anyway.
    pub fn cost(&self, usage: &Usage, images: usize) -> Option<f64> {
        self.costs(usage, images).as_ref().map(Costs::total)
    }

    /// The parts of that; what images cost is part of what was written.
    fn costs(&self, usage: &Usage, images: usize) -> Option<Costs> {
        let is_free = self.image.is_some() && self.rates.input == 0.0 && self.rates.output == 0.0;
        let tokens = self.costs_of_tokens(usage).or_else(|| is_free.then(Costs::default))?;
        Some(Costs { output: tokens.output + self.image.unwrap_or(0.0) * images as f64, ..tokens })
    }

    /// Kinds of tokens that nobody counted are taken to be none.
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
