//! The settings of an agent, with queries about its names, its variants and its models.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use toolgate_core::id::{AgentName, ModelName, ServerId};
use toolgate_core::pattern::NamePattern;
use toolgate_core::policy::Policy;
use toolgate_core::run::{Backoff, Candidate, Limits, Restart, RunRules};
use toolgate_core::tool::{ExternalTool, ToolFilter};

/// An agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    pub name: AgentName,
    /// Other names under which runs may request it.
    pub aliases: Vec<AgentName>,
    pub variants: BTreeMap<String, AgentSettings>,
    pub model: ModelName,
    /// The fallback models, in order; each appears once.
    pub fallback: Vec<Candidate>,
    /// The models that a run may choose, besides its model and the fallback models.
    pub selectable_models: Vec<ModelName>,
    /// Seconds for which a failed model is skipped.
    pub cooldown_s: u64,
    /// The delays before further attempts at a model.
    pub backoff: Backoff,
    /// Its authored instructions; may be empty.
    pub instructions: String,
    /// The instructions of its preset, which apply if it has none of its own.
    pub preset: String,
    /// The folder that it works on.
    pub working_directory: Option<PathBuf>,
    /// The instructions of the project in that folder.
    pub project: String,
    /// The servers whose tools it may use, in the order written.
    pub servers: Vec<ServerId>,
    /// The filter for their tools.
    pub tools: ToolFilter,
    /// Priorities by name pattern; the first match applies.
    pub priorities: Vec<(NamePattern, i32)>,
    /// The rules that its runs record as they are.
    pub rules: RunRules,
    /// Its approval policy.
    pub policy: Arc<Policy>,
    /// The permission modes that a run may choose in place of the policy.
    pub modes: Vec<Arc<Policy>>,
    /// Seconds without use after which a session expires.
    pub expire_after_s: Option<u64>,
    /// The changes of the configuration after which a session begins afresh.
    pub restart_on: BTreeSet<Restart>,
    /// Whether a run may add instructions of its caller to the system prompt.
    pub run_instructions: bool,
    /// Whether tools whose every call requires approval are hidden from the model until a grant covers them.
    pub hide_unapproved: bool,
    /// Tools that the calling application runs.
    pub external_tools: Vec<ExternalTool>,
    pub limits: Limits,
}

impl AgentSettings {
    /// Its system prompt: its own instructions or those of its preset, its working directory, and the project's
    /// instructions.
    pub fn system(&self) -> String {
        let own = if self.instructions.is_empty() { &self.preset } else { &self.instructions };
        let folder = self.working_directory.as_ref();
        let folder = folder.map(|folder| format!("The working directory is `{}`.", folder.display()));
        let parts = [Some(own.clone()), folder, Some(self.project.clone())];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// Whether the name is that of the agent, or one of its aliases.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.as_str() == name || self.aliases.iter().any(|alias| alias.as_str() == name)
    }

    /// The agent in one of its variants, from which another one can still be chosen.
    pub fn in_variant(&self, variant: &str) -> Option<Self> {
        Some(Self { variants: self.variants.clone(), ..self.variants.get(variant)?.clone() })
    }

    /// Every model that the agent may use: its own, the fallbacks, those that a run may choose, and the one that writes
    /// summaries.
    pub fn models(&self) -> impl Iterator<Item = &ModelName> {
        let summarizes = self.rules.compaction.iter().filter_map(|compaction| compaction.model.as_ref());
        let of_runs = || {
            let fallback = self.fallback.iter().map(|candidate| &candidate.model);
            [&self.model].into_iter().chain(fallback).chain(&self.selectable_models)
        };
        of_runs().chain(summarizes.filter(move |name| !of_runs().any(|known| known == *name)))
    }
}
