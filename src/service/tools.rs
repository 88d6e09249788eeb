//! Agents, which all tenants share, and their tools.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_core::id::{AgentName, RunId};
use toolgate_core::policy::Subject;
use toolgate_core::run::Run;
use toolgate_core::tool::{Tool, Toolset};
use toolgate_runner::{Agent, Execution, Request, ToolCallState, called};

use super::error::ServiceError;
use super::new_run;
use super::runs::TenantRunner;

impl TenantRunner {
    /// The agents, by name.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.runner.agents()
    }

    /// The agent of that name or alias.
    pub fn agent(&self, name: &str) -> Result<Arc<Agent>, ServiceError> {
        self.runner.agent(&name.into()).map_err(|_| ServiceError::not_found("agent", name))
    }

    /// The tools that an agent's model would see now.
    pub async fn tools(&self, agent: &AgentName) -> Result<Toolset, ServiceError> {
        self.runner.tools(agent, None).await.map_err(ServiceError::of_named_agent)
    }

    /// The subject for the policy before the arguments of a call are known.
    pub fn subject<'a>(&'a self, agent: &'a Agent, tool: &'a Tool) -> Subject<'a> {
        Subject { tool, agent: Some(&agent.name), principal: self.caller.principal.as_ref(), arguments: None }
    }

    /// Calls a tool in a run of its own, for the tenant and in the name of the caller.
    pub async fn call(
        &self,
        request: Request,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Execution, ServiceError> {
        let request = new_run::for_caller(request, &self.caller, self.media_hosts)?;
        self.runner.call_tool(request, tool, arguments).await.map_err(ServiceError::of_named_agent)
    }

    /// The outcome of such a call.
    pub async fn called(&self, run: &RunId) -> Result<(Run, ToolCallState), ServiceError> {
        let found = self.run(run.as_str()).await?;
        let (run, journal) = self.runner.at_now(found.id()).await?;
        Ok((run, called(&journal)))
    }
}
