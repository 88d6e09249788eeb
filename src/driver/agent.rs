//! Agent: resolved configuration, with its models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolgate_core::id::{AgentName, ModelName, ServerId};
use toolgate_core::pattern::NamePattern;
use toolgate_core::policy::Policy;
use toolgate_core::run::{Backoff, Candidate, DEFAULT_COOLDOWN_S, Limits, ModelOptions, Restart, RunRules, Spec};
use toolgate_core::tool::{ExternalTool, Origin, Pins, ToolFilter, ToolsetRules, Undo};
use toolgate_ports::Model;

/// A resolved agent.
#[derive(Clone)]
pub struct Agent {
    pub name: AgentName,
    /// Other names under which runs may request it. A run records the agent's own name.
    pub aliases: Vec<AgentName>,
    pub model_name: ModelName,
    pub model: Arc<dyn Model>,
    /// The fallback models, in order.
    pub fallback: Vec<Fallback>,
    /// The models that a run may choose, besides its model and the fallback models.
    pub selectable_models: Vec<NamedModel>,
    /// Seconds of cooldown after a model was abandoned for another one.
    pub cooldown_s: u64,
    /// The delays before further attempts at a model.
    pub backoff: Backoff,
    /// Its system prompt: authored text only.
    pub instructions: String,
    /// Whether a run may add instructions of its caller to the system prompt.
    pub run_instructions: bool,
    /// The folder that it works on.
    pub working_directory: Option<String>,
    /// The MCP servers it uses.
    pub servers: Vec<ServerId>,
    /// The servers among them without which its runs fail.
    pub required: Vec<ServerId>,
    /// External tools that every caller of it provides.
    pub external_tools: Vec<ExternalTool>,
    /// Which tools it may use.
    pub tools: ToolFilter,
    /// Priorities by name pattern; the first match wins.
    pub priorities: Vec<(NamePattern, i32)>,
    pub policy: Arc<Policy>,
    /// The permission modes that a run may choose in place of the policy, by the names of these policies.
    pub modes: Vec<Arc<Policy>>,
    /// When its sessions begin afresh.
    pub sessions: SessionRules,
    /// The undo of each tool that has one.
    pub undos: BTreeMap<Origin, Undo>,
    /// Servers that it does not use and that rules of the policy may name. A rule that asks or denies by the name of a tool
    /// or server that does not exist makes the calls that it may have meant require approval.
    pub other_servers: Vec<ServerId>,
    /// Whether tools whose every call requires approval are hidden from the model until a grant covers them.
    pub hide_unapproved: bool,
    /// The rules that its runs record as they are.
    pub rules: RunRules,
    /// The model that writes summaries, if it is neither its model nor a fallback model.
    pub compaction_model: Option<NamedModel>,
    pub limits: Limits,
    /// Whether a single server's tools keep their own names.
    pub pass_through: bool,
}

/// The rules by which a session of an agent begins afresh: its next run does not continue the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRules {
    /// Seconds without use after which it expires; `None` for never. A session may have its own time.
    pub expire_after_s: Option<u64>,
    /// The changes of the configuration that matter.
    pub restart_on: BTreeSet<Restart>,
}

impl Default for SessionRules {
    fn default() -> Self {
        Self { expire_after_s: None, restart_on: [Restart::WorkingDirectory].into() }
    }
}

/// A model with its configured name.
#[derive(Clone)]
pub struct NamedModel {
    pub name: ModelName,
    pub model: Arc<dyn Model>,
}

/// A fallback model, used when the models before it fail.
#[derive(Clone)]
pub struct Fallback {
    pub model_name: ModelName,
    pub model: Arc<dyn Model>,
    /// Attempts at it in one turn; `None` for the run's `max_attempts`.
    pub attempts: Option<u32>,
}

impl Fallback {
    fn candidate(&self) -> Candidate {
        Candidate { model: self.model_name.clone(), attempts: self.attempts }
    }
}

impl Agent {
    /// An agent with a model and nothing else: no tools, the policy `default`, default limits.
    pub fn new(name: impl Into<AgentName>, model: Arc<dyn Model>) -> Self {
        Self {
            name: name.into(),
            aliases: Vec::new(),
            model_name: ModelName::from(model.identity().model.as_str()),
            model,
            fallback: Vec::new(),
            selectable_models: Vec::new(),
            cooldown_s: DEFAULT_COOLDOWN_S,
            backoff: Backoff::default(),
            instructions: String::new(),
            run_instructions: false,
            working_directory: None,
            servers: Vec::new(),
            required: Vec::new(),
            external_tools: Vec::new(),
            tools: ToolFilter::default(),
            priorities: Vec::new(),
            policy: Arc::default(),
            modes: Vec::new(),
            sessions: SessionRules::default(),
            undos: BTreeMap::new(),
            other_servers: Vec::new(),
            hide_unapproved: false,
            rules: RunRules::default(),
            compaction_model: None,
            limits: Limits::default(),
            pass_through: false,
        }
    }

    /// Its models: the preferred one, the fallback models, and those that a run may choose.
    pub fn models(&self) -> impl Iterator<Item = (&ModelName, &Arc<dyn Model>)> {
        let fallback = self.fallback.iter().map(|fallback| (&fallback.model_name, &fallback.model));
        let selectable = self.selectable_models.iter().map(|named| (&named.name, &named.model));
        [(&self.model_name, &self.model)].into_iter().chain(fallback).chain(selectable)
    }

    /// The agent for a run with these model options.
    ///
    /// # Errors
    ///
    /// The first model of the run that does not support them, and the reason.
    pub fn with_options(&self, spec: &Spec) -> Result<Self, (ModelName, String)> {
        let mut agent = self.clone();
        let selectable = agent.selectable_models.iter_mut().map(|named| (&named.name, &mut named.model));
        let fallback = agent.fallback.iter_mut().map(|fallback| (&fallback.model_name, &mut fallback.model));
        let models = [(&agent.model_name, &mut agent.model)].into_iter().chain(fallback).chain(selectable);
        for (name, model) in models.filter(|(name, _)| spec.asks(name)) {
            *model = model.with_options(&spec.model_options).map_err(|why| (name.clone(), why))?;
        }
        Ok(agent)
    }

    /// Its policy, and those of its permission modes.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<Policy>> {
        [&self.policy].into_iter().chain(&self.modes)
    }

    /// Whether a run may choose this permission mode. The name of its policy is one, too.
    pub fn has_mode(&self, mode: &str) -> bool {
        self.policies().any(|policy| policy.name == mode)
    }

    /// The policy for the calls of a run. The run of a mode that the agent does not have is not executed.
    pub fn policy_of(&self, spec: &Spec) -> &Arc<Policy> {
        let chosen = spec.mode.as_ref().and_then(|mode| self.policies().find(|policy| policy.name == *mode));
        chosen.unwrap_or(&self.policy)
    }

    /// The agent as a run specification, before the caller narrows it.
    pub fn spec(&self) -> Spec {
        Spec {
            agent: self.name.clone(),
            principal: None,
            model: self.model_name.clone(),
            model_options: ModelOptions::default(),
            fallback: self.fallback.iter().map(Fallback::candidate).collect(),
            cooldown_s: self.cooldown_s,
            system: self.instructions.clone(),
            working_directory: self.working_directory.clone(),
            mode: None,
            servers: self.servers.clone(),
            required: self.required.clone(),
            injected: Vec::new(),
            external_tools: self.external_tools.clone(),
            tools: ToolFilter::default(),
            rules: RunRules {
                validate_output: self.rules.validate_output || self.rules.output_schema.is_some(),
                ..self.rules.clone()
            },
            limits: self.limits.clone(),
        }
    }

    /// The rules that turn tools into the toolset of a run.
    pub fn toolset_rules(&self, spec: &Spec, pins: &Arc<Pins>) -> ToolsetRules {
        let narrowed = self.servers.iter().filter(|server| !spec.servers.contains(server));
        ToolsetRules {
            agent: Some(self.name.clone()),
            principal: spec.principal.clone(),
            filters: vec![self.tools.clone(), spec.tools.clone()],
            priorities: self.priorities.clone(),
            policy: self.policy_of(spec).clone(),
            pass_through: self.pass_through && spec.servers.len() == 1,
            pins: pins.clone(),
            welcome: spec.injected.clone(),
            ask_human: spec.rules.ask_human,
            finish: spec.finish_schema().cloned(),
            hide_unapproved: self.hide_unapproved,
            undos: if spec.rules.compensate { self.undos.clone() } else { BTreeMap::new() },
            other_servers: narrowed.chain(&self.other_servers).cloned().collect(),
        }
    }
}
