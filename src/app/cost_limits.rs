//! Cost limits that have no effect, because the price of a model is unknown.

use super::models::Models;
use super::prices::Pricing;
use crate::config::{ModelSettings, Settings};
use crate::core::id::{AgentName, ModelName};

/// A cost limit that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleCostLimit {
    /// The agent with `max_cost_usd`.
    pub agent: AgentName,
    /// One of its models, whose price is unknown.
    pub model: ModelName,
}

impl std::fmt::Display for IdleCostLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { agent, model } = self;
        write!(
            f,
            "agent {agent}: `max_cost_usd` has no effect, the price of model {model} is unknown; set it with \
             `prices: {{ {model}: {{ input: …, output: … }} }}`, in US dollars per million tokens"
        )
    }
}

/// The agents whose `max_cost_usd` has no effect for one of their models, because the price of the model is unknown.
/// A model that is not configured is not listed, because its absence is the actual error.
pub fn idle_cost_limits(settings: &Settings, models: &Models) -> Vec<IdleCostLimit> {
    let is_missing = |name: &ModelName| matches!(settings.models.get(name), Some(ModelSettings::Missing { .. }));
    let is_unknown = |name: &ModelName| {
        let model = models.get(name).filter(|_| !is_missing(name));
        model.is_some_and(|model| Pricing::new(settings, name, model.identity()).is_unknown())
    };
    let limited = settings.agents.values().filter(|agent| agent.limits.max_cost_usd.is_some());
    let idle = limited.flat_map(|agent| {
        let unknown = agent.models().filter(|name| is_unknown(name));
        unknown.map(|model| IdleCostLimit { agent: agent.name.clone(), model: model.clone() })
    });
    idle.collect()
}
