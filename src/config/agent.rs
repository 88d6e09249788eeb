//! Queries about the settings of an agent: its names, its variants and its models.

use toolgate_core::id::ModelName;

use crate::settings::AgentSettings;

impl AgentSettings {
    /// Whether the name is that of the agent, or one of its aliases.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.as_str() == name || self.aliases.iter().any(|alias| alias.as_str() == name)
    }

    /// The agent in one of its variants, from which another one can still be chosen.
    pub fn in_variant(&self, variant: &str) -> Option<Self> {
        Some(Self { variants: self.variants.clone(), ..self.variants.get(variant)?.clone() })
    }

    /// Every model that the agent may use: its own, the fallbacks, and the one that writes summaries.
    pub fn models(&self) -> impl Iterator<Item = &ModelName> {
        let summarizes = self.compaction.iter().filter_map(|compaction| compaction.model.as_ref());
        let summarizes = summarizes.filter(|name| **name != self.model && !self.is_fallback(name));
        [&self.model].into_iter().chain(self.fallback.iter().map(|candidate| &candidate.model)).chain(summarizes)
    }

    fn is_fallback(&self, model: &ModelName) -> bool {
        self.fallback.iter().any(|candidate| candidate.model == *model)
    }
}
