//! Toolset cache: runs whose agent, settings and servers are the same share one toolset. Naming, hashing and judging
//! hundreds of tools costs more than a turn of a run, and the result is the same until one of its inputs changes.

use std::sync::Arc;

use toolgate_core::id::ModelName;
use toolgate_core::tool::{ExternalTool, Pins, ServerTools, Toolset, ToolsetRules};
use toolgate_ports::{Model, Recent, ToolInputValidator};

use super::Agent;

/// The most toolsets: those of the agents, and of the callers that narrow or extend them.
const CAPACITY: usize = 64;

/// The last toolsets of a configuration.
#[derive(Debug)]
pub struct ToolsetCache(Recent<Key, Arc<Toolset>>);

/// The inputs of a toolset, besides the validator.
struct Key {
    external: Vec<ExternalTool>,
    offers: Vec<ServerTools>,
    rules: ToolsetRules,
    model: Option<Arc<dyn Model>>,
}

impl Default for ToolsetCache {
    fn default() -> Self {
        Self(Recent::new(CAPACITY))
    }
}

impl ToolsetCache {
    /// The tools that an agent offers to this model, one of its own, in a run that has pinned these definitions.
    pub(super) fn toolset(
        &self,
        agent: &Agent,
        model: &ModelName,
        (external, offers): (&[ExternalTool], Vec<ServerTools>),
        rules: ToolsetRules,
        inputs: &dyn ToolInputValidator,
    ) -> Arc<Toolset> {
        let assemble = |rules: &ToolsetRules, offers: &[ServerTools]| {
            let tools = Toolset::assemble(external, offers, rules).without(|tool| inputs.accepts(tool).err());
            Arc::new(agent.within_tool_limit(model, tools))
        };
        // Pins and principal vary between runs that could share a toolset. Pins matter only if a tool has changed since,
        // the principal only if the policy reads it (decision 0048).
        let ToolsetRules { pins, .. } = rules;
        let principal = rules.principal.filter(|_| rules.policy.reads_principal());
        let shared = ToolsetRules { pins: Arc::default(), principal, ..rules };
        let adapter = agent.models().find(|(name, _)| *name == model).map(|(_, model)| model);
        let is_it = |key: &Key, _: &Arc<Toolset>| {
            key.offers == offers && key.rules == shared && key.external == external && same(key.model.as_ref(), adapter)
        };
        let toolset = self.0.get(is_it).unwrap_or_else(|| {
            let toolset = assemble(&shared, &offers);
            let (external, offers) = (external.to_vec(), offers.clone());
            let key = Key { external, offers, rules: shared.clone(), model: adapter.cloned() };
            self.0.insert(key, toolset.clone());
            toolset
        });
        let is_pinned = |pins: &Pins| {
            toolset.pins().iter().all(|(origin, hash)| pins.get(origin).is_none_or(|pinned| pinned == hash))
        };
        match pins.is_empty() || Arc::ptr_eq(&pins, toolset.pins()) || is_pinned(&pins) {
            true => toolset,
            false => assemble(&ToolsetRules { pins, ..shared }, &offers),
        }
    }
}

/// Whether the adapters are one. Those of two models with the same name may differ.
fn same(one: Option<&Arc<dyn Model>>, other: Option<&Arc<dyn Model>>) -> bool {
    let address = |model: &Arc<dyn Model>| Arc::as_ptr(model).cast::<()>();
    one.map(address) == other.map(address)
}
