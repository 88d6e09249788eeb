//! Prices of the configured models, and their sources.

use std::sync::Arc;

use super::Models;
use crate::config::{Api, ModelSettings, PromptCache, Settings};
use crate::core::chat::{Price, Rates};
use crate::core::id::{AgentName, ModelName};
use crate::models::prices::{self, Priced};
use crate::ports::{Model, ModelIdentity};

/// The source of a model's cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pricing {
    /// The configuration.
    Configured(Price),
    /// The built-in list.
    Listed(Price),
    /// The provider reports the cost with each reply.
    Told,
    /// Unknown: the cost of every reply is unknown.
    Unknown,
}

/// A cost limit that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleCostLimit {
    /// The agent with `max_cost_usd`.
    pub agent: AgentName,
    /// One of its models, whose price is unknown.
    pub model: ModelName,
}

impl Pricing {
    /// The source of a configured model's cost: the configuration takes precedence over the list.
    pub fn of(settings: &Settings, name: &ModelName, identity: &ModelIdentity) -> Self {
        if let Some(price) = settings.prices.get(name) {
            return Self::Configured(*price);
        }
        match identity.provider.as_str() {
            "openrouter" | "scripted" => Self::Told,
            provider => match prices::price_of(provider, &identity.model) {
                Some(price) => Self::Listed(kept_for(price, settings.models.get(name))),
                None => Self::Unknown,
            },
        }
    }

    /// Whether the cost of replies is unknown.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// The model with the cost of its replies filled in, if it is known.
    pub(super) fn applied_to(self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        match self {
            Self::Configured(price) | Self::Listed(price) => Arc::new(Priced::new(model, price)),
            Self::Told | Self::Unknown => model,
        }
    }
}

/// The list contains Anthropic's price for caching a prompt for five minutes. Caching for an hour costs twice the input
/// price.
fn kept_for(price: Price, model: Option<&ModelSettings>) -> Price {
    match model {
        Some(ModelSettings::Http(http)) if http.api == Api::Anthropic && http.prompt_cache == PromptCache::OneHour => {
            Price { rates: Rates { cache_write: Some(2.0 * price.rates.input), ..price.rates }, ..price }
        }
        Some(ModelSettings::Http(_) | ModelSettings::Scripted { .. } | ModelSettings::Missing { .. }) | None => price,
    }
}

/// The agents whose `max_cost_usd` has no effect for one of their models, because the price of the model is unknown.
/// A model that is not configured is not listed, because its absence is the actual error.
pub fn idle_cost_limits(settings: &Settings, models: &Models) -> Vec<IdleCostLimit> {
    let is_missing = |name: &ModelName| matches!(settings.models.get(name), Some(ModelSettings::Missing { .. }));
    let is_unknown = |name: &ModelName| {
        let model = models.get(name).filter(|_| !is_missing(name));
        model.is_some_and(|model| Pricing::of(settings, name, model.identity()).is_unknown())
    };
    let limited = settings.agents.values().filter(|agent| agent.limits.max_cost_usd.is_some());
    let idle = limited.flat_map(|agent| {
        let unknown = agent.models().filter(|name| is_unknown(name));
        unknown.map(|model| IdleCostLimit { agent: agent.name.clone(), model: model.clone() })
    });
    idle.collect()
}
