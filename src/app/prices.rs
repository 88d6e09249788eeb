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
    /// Its model, of which nobody knows what it charges.
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

/// The agents whose `max_cost_usd` cannot act, because nobody knows what their model charges. Where no model is configured
/// at all, that is what is wrong.
pub fn idle_cost_limits(settings: &Settings, models: &Models) -> Vec<IdleCostLimit> {
    let limited = settings.agents.values().filter(|agent| agent.limits.max_cost_usd.is_some());
    let is_missing = |name: &ModelName| matches!(settings.models.get(name), Some(ModelSettings::Missing { .. }));
    let unknown = limited.filter(|agent| {
        let model = models.get(&agent.model).filter(|_| !is_missing(&agent.model));
        model.is_some_and(|model| Pricing::of(settings, &agent.model, model.identity()).is_unknown())
    });
    unknown.map(|agent| IdleCostLimit { agent: agent.name.clone(), model: agent.model.clone() }).collect()
}
