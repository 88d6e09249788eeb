//! Agents, which all tenants share, and their tools.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::TenantRunner;
use crate::core::id::{AgentName, RunId};
use crate::core::policy::Subject;
use crate::core::run::Run;
use crate::core::tool::{Tool, Toolset};
use crate::gateway::problem::Problem;
use crate::runner::{Agent, Called, Execution, Request, called};

impl TenantRunner {
    /// The agents, by name.
    pub(in crate::gateway) fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.runner.agents()
    }

    /// The agent of that name.
    pub(in crate::gateway) fn agent(&self, name: &str) -> Result<&Arc<Agent>, Problem> {
        self.agents().find(|agent| agent.name.as_str() == name).ok_or_else(|| Problem::not_found("agent", name))
    }

    /// The tools that an agent's model would see now.
    pub(in crate::gateway) async fn tools(&self, agent: &AgentName) -> Result<Toolset, Problem> {
        self.runner.tools(agent).await.map_err(Problem::of_named_agent)
    }

    /// The subject for the policy before the arguments of a call are known.
    pub(in crate::gateway) fn subject<'a>(&'a self, agent: &'a Agent, tool: &'a Tool) -> Subject<'a> {
        Subject { tool, agent: Some(&agent.name), principal: self.caller.principal.as_ref(), arguments: None }
    }

    /// Calls a tool in a run of its own, for the tenant and in the name of the caller.
    pub(in crate::gateway) async fn call(
        &self,
        request: Request,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Execution, Problem> {
        self.runner.call_tool(self.theirs(request)?, tool, arguments).await.map_err(Problem::of_named_agent)
    }

    /// The outcome of such a call.
    pub(in crate::gateway) async fn called(&self, run: &RunId) -> Result<(Run, Called), Problem> {
        let found = self.run(run.as_str()).await?;
        let (run, journal) = self.runner.at_now(found.id()).await?;
        Ok((run, called(&journal)))
    }
}
