//! Run specification: fixed by the first event of a run, so that any process can execute it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Map;
use serde_json::Value;

use super::{Limits, ModelOptions, Predecessor, RunRules, Segment};
use crate::blob::BlobHandle;
use crate::chat::Message;
use crate::id::{AgentName, ModelName, Principal, RunId, ServerId, SessionId, Tenant};
use crate::tool::{ExternalTool, ToolFilter};
use crate::trace::Trace;

/// The first event of every run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// How the run is executed.
    pub spec: Spec,
    /// The run whose conversation this one continues; `None` if it begins one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<Predecessor>,
    /// Why it does not continue the conversation of its session; `None` if it does, or if it is the session's first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// Messages from the caller that begin the conversation, oldest first. Empty if the run has a predecessor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// The new user message.
    pub input: Message,
    /// The blobs that the input or the history names: of uploaded files, and media of runs whose messages the history repeats.
    /// They are the run's own: a handle in these messages that is not listed here gives no access to a blob.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub files: BTreeSet<BlobHandle>,
    /// The conversation it belongs to.
    pub session: SessionId,
    /// The tenant that owns the run.
    #[serde(default, skip_serializing_if = "Tenant::is_default")]
    pub tenant: Tenant,
    /// The authenticated name of the caller who started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The cause of the run.
    #[serde(default)]
    pub trigger: Trigger,
    /// The trace of the first execution.
    pub trace: Trace,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The reason why a run begins a session afresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// The run before worked on another folder.
    WorkingDirectory,
    /// The run before asked another model first.
    Model,
    /// The run before could use other servers.
    Servers,
    /// Another policy, or another text of it, decided about the calls of the run before.
    Policy,
    /// The session was not used for too long.
    Expired,
}

/// The cause of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A user or an application started it.
    #[default]
    Manual,
    /// A request over HTTP started it.
    Api,
    /// A schedule of the caller started it.
    Schedule { name: String },
    /// A user or an application asked for a compaction of a session.
    Compaction,
    /// It copies the journal of another run up to a position.
    Fork {
        run: RunId,
        /// The number of copied events: the source's events up to a position, without unused consents.
        at: u64,
        /// The authors of the source, and of the runs it was copied from in turn: the copied events may contain their
        /// words.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        authors: BTreeSet<String>,
    },
    /// It copies the journal of another run of its session up to a position, and takes the place of that run.
    Retry {
        run: RunId,
        /// The number of copied events, as for a fork.
        at: u64,
        /// The authors of the source, as for a fork.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        authors: BTreeSet<String>,
    },
}

impl Trigger {
    /// The number of events at the beginning of the journal that were copied from another run.
    pub fn copied(&self) -> u64 {
        match self {
            Self::Manual | Self::Api | Self::Schedule { .. } | Self::Compaction => 0,
            Self::Fork { at, .. } | Self::Retry { at, .. } => *at,
        }
    }
}

impl Started {
    /// The authors of the conversation it continues and of the runs it was copied from, and its own author.
    pub fn authors(&self) -> BTreeSet<String> {
        let before = self.predecessor.iter().flat_map(|predecessor| &predecessor.authors);
        let copied = match &self.trigger {
            Trigger::Manual | Trigger::Api | Trigger::Schedule { .. } | Trigger::Compaction => None,
            Trigger::Fork { authors, .. } | Trigger::Retry { authors, .. } => Some(authors),
        };
        before.chain(copied.into_iter().flatten()).chain(&self.by).cloned().collect()
    }

    /// Whether the run has no other task than a compaction of its session: it has no message. A retry or a fork of such a
    /// run is one too.
    pub fn is_compaction(&self) -> bool {
        self.input.is_blank()
    }

    /// The conversation before the run, once it was read.
    pub fn prior_conversation(&self) -> Option<&Arc<Segment>> {
        self.predecessor.as_ref()?.conversation.as_ref()
    }

    /// Whether the conversation before the run was read, if there is one. Only then its transcript is complete.
    pub fn is_resolved(&self) -> bool {
        self.predecessor.as_ref().is_none_or(|predecessor| predecessor.conversation.is_some())
    }
}

/// The configuration of an agent for one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The agent's configured name.
    pub agent: AgentName,
    /// The principal on whose behalf it acts, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The model's configured name.
    pub model: ModelName,
    /// What its model calls use in place of the settings of the configured models.
    #[serde(default, skip_serializing_if = "ModelOptions::is_empty")]
    pub model_options: ModelOptions,
    /// The fallback models, in order. Each model is listed only once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<Candidate>,
    /// Seconds of cooldown after a model was abandoned for another one.
    #[serde(default = "default_cooldown_s")]
    pub cooldown_s: u64,
    /// The system prompt. Authored text only; never contains untrusted content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The folder that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The permission mode: one of the agent's policies; `None` for the agent's own policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The MCP servers whose tools it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerId>,
    /// The servers among them without which the run fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<ServerId>,
    /// The servers among them that the caller attached for this run. Their tools need not be on an allow list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<ServerId>,
    /// The tools that the caller runs itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_tools: Vec<ExternalTool>,
    /// The run's filter on the agent's tools.
    #[serde(default)]
    pub tools: ToolFilter,
    #[serde(flatten)]
    pub rules: RunRules,
    #[serde(default)]
    pub limits: Limits,
}

/// The model name of a direct tool call: a run without a model, which makes the one call that its caller requested. No
/// configured model can have this name.
pub const DIRECT_CALL_MODEL: &str = "toolgate/call";

impl Spec {
    /// Whether the run is a direct tool call. It is no part of the conversation of its session, whose grants cover it.
    pub fn is_direct_call(&self) -> bool {
        self.model.as_str() == DIRECT_CALL_MODEL
    }

    /// Whether the run's turns may ask this model.
    pub fn asks(&self, model: &ModelName) -> bool {
        self.model == *model || self.fallback.iter().any(|candidate| candidate.model == *model)
    }
}

/// Default seconds of cooldown after a model was abandoned for another one.
pub const DEFAULT_COOLDOWN_S: u64 = 60;

fn default_cooldown_s() -> u64 {
    DEFAULT_COOLDOWN_S
}

/// A fallback model, used when the models before it fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    pub model: ModelName,
    /// Attempts at it in one turn, the first included; `None` for the run's `max_attempts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}
