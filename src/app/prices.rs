//! Prices of the configured models, and their sources.

use std::sync::Arc;

use crate::config::{Api, ModelSettings, Settings};
use crate::core::chat::{Price, Rates};
use crate::core::id::ModelName;
use crate::models::PromptCache;
use crate::models::prices::{self, Priced};
use crate::ports::{Model, ModelIdentity};

/// The source of a model's cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pricing {
    Configured(Price),
    /// The built-in list.
    Listed(Price),
    /// The provider reports the cost with each reply.
    Reported,
    /// Unknown: the cost of every reply is unknown.
    Unknown,
}

impl Pricing {
    /// The source of a configured model's cost: the configuration takes precedence over the list.
    pub fn new(settings: &Settings, name: &ModelName, identity: &ModelIdentity) -> Self {
        if let Some(price) = settings.prices.get(name) {
            return Self::Configured(*price);
        }
        match identity.provider.as_str() {
            "openrouter" | "scripted" => Self::Reported,
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
            Self::Reported | Self::Unknown => model,
        }
    }
}

/// The list contains Anthropic's price for caching a prompt for five minutes. Caching for an hour costs twice the input
/// price.
fn kept_for(price: Price, model: Option<&ModelSettings>) -> Price {
    match model {
        Some(ModelSettings::Http(http))
            if http.api == Api::Anthropic && http.settings.prompt_cache == PromptCache::OneHour =>
        {
            Price { rates: Rates { cache_write: Some(price.rates.input * 2), ..price.rates }, ..price }
        }
        Some(ModelSettings::Http(_) | ModelSettings::Scripted { .. } | ModelSettings::Missing { .. }) | None => price,
    }
}
