//! `/v1/agents`: the agents that a run can use. Agents are configuration, which all tenants share.

use axum::Json;
use serde::Serialize;
use serde_json::Value;
use toolgate_core::lifecycle::limits;
use toolgate_core::run::Limits;
use toolgate_core::tool::ToolFilter;
use toolgate_runner::Agent;
use toolgate_service::{Caller, Scope, TenantRunner};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Path;
use crate::pagination::{Page, PageResult};
use crate::problem::Problem;
use crate::runs::events::RunLimitsView;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(read))
}

/// List agents
#[utoipa::path(
    get, path = "/v1/agents", tag = "tools", operation_id = "listAgents",
    responses((status = 200, description = "All agents, by name", body = Page<AgentView>)),
)]
async fn list(runner: TenantRunner) -> PageResult<AgentView> {
    let agents = runner.agents().collect();
    Ok(Json(Page::whole(agents, |agent| agent.name.to_string(), |agent| AgentView::new(agent, runner.caller()))))
}

/// Retrieve an agent
#[utoipa::path(
    get, path = "/v1/agents/{agent}", tag = "tools", operation_id = "readAgent",
    responses((status = 200, description = "The agent", body = AgentView)),
)]
async fn read(runner: TenantRunner, Path(agent): Path<String>) -> Result<Json<AgentView>, Problem> {
    Ok(Json(AgentView::new(&*runner.agent(&agent)?, runner.caller())))
}

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
struct AgentView {
    /// The agent's name.
    id: String,
    /// Always `agent`.
    object: &'static str,
    /// The agent's model.
    model: String,
    /// The fallback models, in order.
    fallback: Vec<String>,
    /// Further models that a run may choose with `model`.
    models: Vec<String>,
    /// The MCP servers that the agent uses.
    servers: Vec<String>,
    /// Tools that each client of the agent runs itself, by their own names.
    external_tools: Vec<String>,
    /// Which tools the agent may use.
    tools: FilterView,
    /// The policy: which calls run, require approval or are denied.
    policy: PolicyView,
    /// Permission modes that a run or a session may choose with `mode`, in place of the policy.
    modes: Vec<String>,
    /// Whether a run may add `instructions` to the system prompt.
    run_instructions: bool,
    /// Whether the model may ask a person.
    ask_human: bool,
    /// JSON Schema of the agent's answers.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// Limits of its runs.
    #[schema(value_type = RunLimitsView)]
    #[serde(serialize_with = "limits")]
    limits: Limits,
    /// The system prompt; only for the scope `admin`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

/// Patterns of tool names.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentTools)]
struct FilterView {
    /// Names that the model may see; an empty list means all.
    allow: Vec<String>,
    /// Names that the model may not see.
    deny: Vec<String>,
}

/// A policy.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentPolicy)]
pub(crate) struct PolicyView {
    /// The policy's name.
    name: String,
    /// Hash of its text.
    version: String,
}

impl AgentView {
    /// The view of an agent for a caller.
    fn new(agent: &Agent, caller: &Caller) -> Self {
        let mark = agent.policy.mark();
        Self {
            id: agent.name.to_string(),
            object: "agent",
            model: agent.model_name.to_string(),
            fallback: agent.fallback.iter().map(|fallback| fallback.model_name.to_string()).collect(),
            models: agent.selectable_models.iter().map(|named| named.name.to_string()).collect(),
            servers: agent.servers.iter().map(ToString::to_string).collect(),
            external_tools: agent.external_tools.iter().map(|tool| tool.name.clone()).collect(),
            tools: FilterView::new(&agent.tools),
            policy: PolicyView { name: mark.name, version: mark.version },
            modes: agent.modes.iter().map(|mode| mode.name.clone()).collect(),
            run_instructions: agent.run_instructions,
            ask_human: agent.rules.ask_human.is_some(),
            output_schema: agent.rules.output_schema.clone(),
            limits: agent.limits.clone(),
            instructions: caller.scopes.contains(Scope::Admin).then(|| agent.instructions.clone()),
        }
    }
}

impl FilterView {
    fn new(filter: &ToolFilter) -> Self {
        let words =
            |patterns: &[toolgate_core::pattern::NamePattern]| patterns.iter().map(ToString::to_string).collect();
        Self { allow: words(&filter.allow), deny: words(&filter.deny) }
    }
}
