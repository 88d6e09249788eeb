//! Request for a new run of an agent, optionally narrowed by the caller.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_core::blob::BlobHandle;
use toolgate_core::chat::Message;
use toolgate_core::id::{AgentName, ModelName, Principal, RunId, ServerId, SessionId, Tenant};
use toolgate_core::run::{ModelOptions, Spec, TighterLimits, Trigger};
use toolgate_core::tool::{Builtin, ExternalTool, ToolFilter, external_name};
use toolgate_core::trace::Trace;
use toolgate_driver::Ports;
use toolgate_ports::McpServers;

use super::resume_input::require_mode;
use super::run_servers::{RunServers, free_names};
use super::{Agent, RunnerError};

/// A request for a new run.
#[derive(Clone, Debug)]
pub struct Request {
    pub agent: AgentName,
    /// The user's message.
    pub input: Message,
    /// Messages before the message, in a run that begins a conversation.
    pub history: Vec<Message>,
    /// The stored files, and media of other runs, that the input or the history names by their handles. The store of blobs has
    /// them; the run keeps them, whatever happens to the files and runs.
    pub files: BTreeSet<BlobHandle>,
    /// The session that the run continues, or begins if there is no such session. Without one the run is a conversation
    /// of its own, which a later run continues if it names the run's id as its session.
    pub session: Option<SessionId>,
    /// The version that the session must have, if the caller saw one.
    pub session_version: Option<u64>,
    /// The tenant; default: the only tenant of a program without others.
    pub tenant: Tenant,
    /// The authenticated caller.
    pub by: Option<String>,
    /// The id of the run, from [`super::AgentRunner::fresh_id`]; default: a new one.
    pub id: Option<RunId>,
    /// The principal that the run acts for; policies and grants can refer to it.
    pub principal: Option<Principal>,
    /// External tools that this caller runs, in addition to the agent's.
    pub external_tools: Vec<ExternalTool>,
    /// The model, one of those that the agent allows; `None` for the agent's own.
    pub model: Option<ModelName>,
    /// What its model calls use in place of the settings of the models.
    pub model_options: ModelOptions,
    /// Instructions after those of the agent, if the agent allows them. Trusted text: it becomes part of the system prompt.
    pub instructions: Option<String>,
    /// The permission mode, one of those of the agent; `None` for that of the session or the agent's own policy.
    pub mode: Option<String>,
    /// A subset of the agent's servers.
    pub servers: Option<Vec<ServerId>>,
    /// MCP servers for this run only, with unique names. Their tools need not be on an allow list.
    pub injected: RunServers,
    /// A filter for the agent's tools; narrows, never widens.
    pub tools: ToolFilter,
    /// JSON Schema of the answer, in place of the agent's.
    pub output_schema: Option<Value>,
    /// Tighter limits than the agent's; wider ones are rejected.
    pub limits: TighterLimits,
    /// What started the run.
    pub cause: Cause,
    /// The parent trace.
    pub trace: Option<Trace>,
    pub metadata: Map<String, Value>,
}

/// What starts a new run that copies no other one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// A user or an application in this process.
    #[default]
    Manual,
    /// A request over HTTP.
    Api,
    Schedule {
        name: String,
    },
}

impl From<Cause> for Trigger {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Manual => Self::Manual,
            Cause::Api => Self::Api,
            Cause::Schedule { name } => Self::Schedule { name },
        }
    }
}

impl Request {
    /// A request with a message for an agent, without options.
    pub fn new(agent: impl Into<AgentName>, text: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            input: Message::user(text),
            history: Vec::new(),
            files: BTreeSet::new(),
            session: None,
            session_version: None,
            tenant: Tenant::default(),
            by: None,
            id: None,
            principal: None,
            external_tools: Vec::new(),
            model: None,
            model_options: ModelOptions::default(),
            instructions: None,
            mode: None,
            servers: None,
            injected: RunServers::new(),
            tools: ToolFilter::default(),
            output_schema: None,
            limits: TighterLimits::default(),
            cause: Cause::default(),
            trace: None,
            metadata: Map::new(),
        }
    }

    /// Adds a tool that the caller runs.
    #[must_use]
    pub fn external_tool(mut self, tool: ExternalTool) -> Self {
        self.external_tools.push(tool);
        self
    }

    /// Adds a server for this run only.
    #[must_use]
    pub fn inject(mut self, id: impl Into<ServerId>, servers: Arc<dyn McpServers>) -> Self {
        self.injected = self.injected.and(id, servers);
        self
    }

    /// The specification of the run, within the limits of its agent.
    pub(super) fn spec(&self, agent: &Agent, ports: &Ports) -> Result<Spec, RunnerError> {
        if self.input.is_blank() {
            return Err(RunnerError::EmptyMessage);
        }
        let mut spec = agent.spec();
        if let Some(model) = &self.model {
            choose_model(&mut spec, agent, model)?;
        }
        spec.model_options = self.model_options.clone();
        if let Some(instructions) = &self.instructions {
            if !agent.run_instructions {
                return Err(RunnerError::InstructionsRefused(agent.name.clone()));
            }
            spec.system = [spec.system.as_str(), instructions.as_str()].map(str::trim).join("\n\n").trim().to_owned();
        }
        self.mode.as_ref().map_or(Ok(()), |mode| require_mode(agent, mode))?;
        spec.mode.clone_from(&self.mode);
        if let Some(servers) = &self.servers {
            if let Some(server) = servers.iter().find(|server| !agent.servers.contains(server)) {
                return Err(RunnerError::NoSuchServer { agent: agent.name.clone(), server: server.clone() });
            }
            spec.servers.clone_from(servers);
        }
        free_names(&agent.servers, &self.injected)?;
        spec.injected = self.injected.ids().cloned().collect();
        spec.servers.extend(spec.injected.iter().cloned());
        spec.external_tools.extend(self.external_tools.iter().cloned());
        let mut names = BTreeSet::new();
        if let Some(twice) = spec.external_tools.iter().find(|tool| !names.insert(&tool.name)) {
            return Err(RunnerError::DuplicateTool(twice.name.clone()));
        }
        for (place, declared) in self.external_tools.iter().enumerate() {
            let unusable = |why| RunnerError::UnusableTool { place, tool: declared.name.clone(), why };
            ports.inputs.accepts(&declared.to_tool()).map_err(unusable)?;
        }
        spec.tools = self.tools.clone();
        // The names of servers' tools are checked when the servers have listed them.
        let may_be_of_a_server =
            |name: &str| !spec.servers.is_empty() && (agent.pass_through || name.starts_with("mcp_"));
        let is_external =
            |name: &str| spec.external_tools.iter().any(|tool| external_name(&tool.name).as_str() == name);
        let is_known = |name: &str| may_be_of_a_server(name) || is_external(name) || Builtin::reserves(name);
        if let Some(foreign) = spec.tools.foreign_name(is_known) {
            return Err(RunnerError::ForeignTool { agent: agent.name.clone(), foreign });
        }
        spec.principal = self.principal.clone();
        if let Some(schema) = &self.output_schema {
            ports.outputs.takes_schema(schema).map_err(RunnerError::UnusableOutputSchema)?;
            spec.rules.output_schema = Some(schema.clone());
            spec.rules.validate_output = true;
        }
        let tightened = spec.limits.tightened(&self.limits);
        spec.limits = tightened.map_err(|limit| RunnerError::WiderLimit { agent: agent.name.clone(), limit })?;
        Ok(spec)
    }
}

/// Gives a run this model, one of those that its agent allows a run to choose.
pub(super) fn choose_model(spec: &mut Spec, agent: &Agent, model: &ModelName) -> Result<(), RunnerError> {
    if !agent.models().any(|(name, _)| name == model) {
        let known = agent.models().map(|(name, _)| name.clone()).collect();
        return Err(RunnerError::NoSuchModel { agent: agent.name.clone(), model: model.clone(), known });
    }
    spec.fallback.retain(|candidate| candidate.model != *model);
    spec.model = model.clone();
    Ok(())
}
