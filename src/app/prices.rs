//! What the models of a configuration charge, and where that is known from.

use std::sync::Arc;

use super::Models;
use crate::config::{Api, ModelSettings, PromptCache, Settings};
use crate::core::chat::{Price, Rates};
use crate::core::id::{AgentName, ModelName};
use crate::models::prices::{self, Priced};
use crate::ports::{Model, ModelIdentity};

/// Where the cost of a model's replies is known from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pricing {
    /// The configuration says what the model charges.
    Configured(Price),
    /// The built-in list does.
    Listed(Price),
    /// Each reply says what it cost.
    Told,
    /// Nobody says: the cost of every reply is unknown.
    Unknown,
}

/// A limit that cannot act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleCostLimit {
    /// The agent with `max_cost_usd`.
    pub agent: AgentName,
    /// One of its models, of which nobody knows what it charges.
    pub model: ModelName,
}

impl Pricing {
    /// How the cost of a configured model is known: what is configured wins over the list.
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

    /// Whether nobody says what a reply costs.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// The model with its costs filled in, as far as they are known.
    pub(super) fn applied_to(self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        match self {
            Self::Configured(price) | Self::Listed(price) => Arc::new(Priced::new(model, price)),
            Self::Told | Self::Unknown => model,
        }
    }
}

/// The list has what Anthropic takes for caching a prompt for five minutes. For an hour it takes twice the price of input.
fn kept_for(price: Price, model: Option<&ModelSettings>) -> Price {
    match model {
        Some(ModelSettings::Http(http)) if http.api == Api::Anthropic && http.prompt_cache == PromptCache::OneHour => {
            Price { rates: Rates { cache_write: Some(2.0 * price.rates.input), ..price.rates }, ..price }
        }
        Some(ModelSettings::Http(_) | ModelSettings::Scripted { .. } | ModelSettings::Missing { .. }) | None => price,
    }
}

/// The agents whose `max_cost_usd` cannot act on one of their models, because nobody knows what it charges. Where no model
/// is configured at all, that is what is wrong.
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
