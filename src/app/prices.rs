//! What the models of a configuration charge, and where that is known from.

use std::sync::Arc;

use super::Models;
use crate::config::{ModelSettings, Settings};
use crate::core::chat::Price;
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
            provider => prices::price_of(provider, &identity.model).map_or(Self::Unknown, Self::Listed),
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
