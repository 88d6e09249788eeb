//! What a caller asks for: a fresh run of an agent, narrowed to what this caller wants.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::injected::{Injected, free_names};
use super::{Agent, RunnerError};
use crate::core::chat::Message;
use crate::core::id::{AgentName, CallId, Principal, RunId, ServerId, SessionId, Tenant};
use crate::core::run::{Spec, TighterLimits};
use crate::core::tool::{CallFailure, ExternalTool, FailureKind, Outcome, ToolFilter, ToolOutput};
use crate::core::trace::Trace;
use crate::driver::Ports;
use crate::ports::McpServers;

/// A request for a fresh run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The agent.
    pub agent: AgentName,
    /// The user's message.
    pub input: Message,
    /// The conversation before it.
    pub history: Vec<Message>,
    /// The conversation it belongs to; default: one of its own.
    pub session: Option<SessionId>,
    /// Whose run it is; default: the one tenant of a program that has no others.
    pub tenant: Tenant,
    /// Who asks for it, as whoever let them in knows them.
    pub by: Option<String>,
    /// The id it is to have, one that [`super::AgentRunner::fresh_id`] made; default: a fresh one.
    pub id: Option<RunId>,
    /// On whose behalf the run acts; policies and standing approvals look at it.
    pub principal: Option<Principal>,
    /// The tools this caller runs itself, besides the agent's.
    pub external_tools: Vec<ExternalTool>,
    /// Only these of the agent's servers.
    pub servers: Option<Vec<ServerId>>,
    /// Servers that only this run has, under names of their own. Their tools need not be on an allow list.
    pub injected: Injected,
    /// Which of the agent's tools may be used; narrows, never widens.
    pub tools: ToolFilter,
    /// JSON Schema of the answer, instead of the agent's.
    pub output_schema: Option<Value>,
    /// Limits tighter than the agent's; wider ones are refused.
    pub limits: TighterLimits,
    /// The trace to continue.
    pub trace: Option<Trace>,
    /// The caller's own facts about the run.
    pub metadata: Map<String, Value>,
}

impl Request {
    /// A message for an agent, and nothing else.
    pub fn new(agent: impl Into<AgentName>, text: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            input: Message::user(text),
            history: Vec::new(),
            session: None,
            tenant: Tenant::default(),
            by: None,
            id: None,
            principal: None,
            external_tools: Vec::new(),
            servers: None,
            injected: Injected::new(),
            tools: ToolFilter::default(),
            output_schema: None,
            limits: TighterLimits::default(),
            trace: None,
            metadata: Map::new(),
        }
    }

    /// The same request with a tool that the caller runs itself.
    #[must_use]
    pub fn external_tool(mut self, tool: ExternalTool) -> Self {
        self.external_tools.push(tool);
        self
    }

    /// The same request with a server that only this run has.
    #[must_use]
    pub fn inject(mut self, id: impl Into<ServerId>, servers: Arc<dyn McpServers>) -> Self {
        self.injected = self.injected.and(id, servers);
        self
    }

    /// What the run is to be, within what its agent allows.
    pub(super) fn spec(&self, agent: &Agent, ports: &Ports) -> Result<Spec, RunnerError> {
        if self.input.is_blank() {
            return Err(RunnerError::EmptyMessage);
        }
        let mut spec = agent.spec();
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
        spec.principal = self.principal.clone();
        if let Some(schema) = &self.output_schema {
            ports.outputs.takes_schema(schema).map_err(RunnerError::UnusableOutputSchema)?;
            spec.output_schema = Some(schema.clone());
            spec.validate_output = true;
        }
        let tightened = spec.limits.tightened(&self.limits);
        spec.limits = tightened.map_err(|limit| RunnerError::WiderLimit { agent: agent.name.clone(), limit })?;
        Ok(spec)
    }
}

/// The results a caller returns for its own tools, as [`super::Resume::results`] wants them.
#[derive(Clone, Copy, Debug)]
pub struct ResultFor;

impl ResultFor {
    /// The call succeeded with this output; any JSON value.
    pub fn output(call: impl Into<CallId>, output: Value) -> (CallId, Outcome) {
        (call.into(), Outcome::Returned(ToolOutput::from_value(output)))
    }

    /// The call failed; the model reads the message.
    pub fn error(call: impl Into<CallId>, message: impl Into<String>) -> (CallId, Outcome) {
        (call.into(), Outcome::Returned(ToolOutput::error(message)))
    }

    /// The caller will not run the call.
    pub fn abandoned(call: impl Into<CallId>) -> (CallId, Outcome) {
        let message = "The application did not run this call.".into();
        (call.into(), Outcome::Failed(CallFailure { kind: FailureKind::Abandoned, message }))
    }
}
