//! What a run is asked to be: fixed by its first event, so that it can be driven on anywhere.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Candidate, Limits};
use crate::core::chat::Message;
use crate::core::id::{AgentName, ModelName, Principal, RunId, ServerId, SessionId, Tenant};
use crate::core::tool::{ExternalTool, TierMode, ToolFilter};
use crate::core::trace::Trace;

/// The first fact of every run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// How the run is to be executed.
    pub spec: Spec,
    /// The conversation before this run, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// The fresh user message.
    pub input: Message,
    /// The conversation it belongs to.
    pub session: SessionId,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Tenant::is_default")]
    pub tenant: Tenant,
    /// Who asked for it, as whoever let them in knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Where it comes from.
    #[serde(default)]
    pub trigger: Trigger,
    /// The trace of the first execution.
    pub trace: Trace,
    /// The caller's own facts about the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// What caused a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A person or an application asked for it.
    #[default]
    Manual,
    /// It copies the journal of another run up to a position.
    Fork {
        /// The other run.
        run: RunId,
        /// How many events were copied: the other run's up to a position, but for consents that were not used there yet.
        at: u64,
        /// Who asked for the other run, and for those it was copied from in turn: what is copied may be their words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        authors: Vec<String>,
    },
}

impl Started {
    /// Those who asked for what it was copied from, and whoever asked for it.
    pub fn authors(&self) -> Vec<String> {
        let mut authors = match &self.trigger {
            Trigger::Manual => Vec::new(),
            Trigger::Fork { authors, .. } => authors.clone(),
        };
        authors.extend(self.by.clone());
        authors
    }
}

/// An agent as a run uses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The agent's configured name.
    pub agent: AgentName,
    /// On whose behalf it acts, if anybody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The model's configured name.
    pub model: ModelName,
    /// The models that stand in for it when it fails, in order. No model is in the chain twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<Candidate>,
    /// Seconds for which a model that was left for another one is passed over.
    #[serde(default = "default_cooldown_s")]
    pub cooldown_s: u64,
    /// Authored text only. Nothing untrusted ever enters it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The MCP servers whose tools it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerId>,
    /// Those of them that the caller brought along for this run. Their tools need not be on an allow list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<ServerId>,
    /// The tools the caller runs itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_tools: Vec<ExternalTool>,
    /// What the run narrows its agent's tools to.
    #[serde(default)]
    pub tools: ToolFilter,
    /// What becomes of calls below the highest tier.
    #[serde(default)]
    pub tiers: TierMode,
    /// Whether the model may ask a person, with the tool `ask_human`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_human: Option<AskHuman>,
    /// What a denied call does.
    #[serde(default)]
    pub on_deny: OnDeny,
    /// What becomes of a call whose outcome nobody knows.
    #[serde(default)]
    pub in_doubt: InDoubt,
    /// JSON Schema of the final answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether the final answer is put to the output validator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub validate_output: bool,
    /// What bounds it.
    #[serde(default)]
    pub limits: Limits,
}

/// Seconds for which a model that was left is passed over, unless something else is said.
pub const DEFAULT_COOLDOWN_S: u64 = 60;

fn default_cooldown_s() -> u64 {
    DEFAULT_COOLDOWN_S
}

/// How a model may ask a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskHuman {
    /// Seconds there are for an answer; without it, as long as the run lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
}

/// What a denied call does to the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDeny {
    /// The model reads the denial and goes on.
    #[default]
    Tell,
    /// The run ends with `tool_denied`.
    Fail,
}

/// What becomes of a call that was started and never settled, when it must not simply be repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InDoubt {
    /// The model reads "outcome unknown".
    #[default]
    Tell,
    /// A person decides whether it is made again.
    Ask,
}
