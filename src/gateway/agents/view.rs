//! An agent as the API shows it.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::core::tool::ToolFilter;
use crate::gateway::access::{Caller, Scope};
use crate::runner::Agent;

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
pub(super) struct AgentView {
    /// Its name.
    id: String,
    /// `agent`.
    object: &'static str,
    /// Its model.
    model: String,
    /// The models that stand in for it, in order.
    fallback: Vec<String>,
    /// The MCP servers it uses.
    servers: Vec<String>,
    /// Tools that every caller of it runs itself, by their own names.
    external_tools: Vec<String>,
    /// Which tools it may use.
    tools: FilterView,
    /// Which calls run, ask or are refused.
    policy: PolicyView,
    /// Whether its model may ask a person.
    ask_human: bool,
    /// JSON Schema of its answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// What bounds its runs.
    #[schema(value_type = Object)]
    limits: Value,
    /// Its system prompt; only for the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

/// Patterns of tool names.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentTools)]
struct FilterView {
    /// Names its model may see; none means all.
    allow: Vec<String>,
    /// Names it may not see.
    deny: Vec<String>,
}

/// A policy.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentPolicy)]
struct PolicyView {
    /// Its name.
    name: String,
    /// Hash of its text.
    version: String,
}

impl AgentView {
    /// An agent as whoever asks may see it.
    pub(super) fn of(agent: &Agent, caller: &Caller) -> Self {
        let mark = agent.policy.mark();
        Self {
            id: agent.name.to_string(),
            object: "agent",
            model: agent.model_name.to_string(),
            fallback: agent.fallback.iter().map(|fallback| fallback.model_name.to_string()).collect(),
            servers: agent.servers.iter().map(ToString::to_string).collect(),
            external_tools: agent.external_tools.iter().map(|tool| tool.name.clone()).collect(),
            tools: FilterView::of(&agent.tools),
            policy: PolicyView { name: mark.name, version: mark.version },
            ask_human: agent.ask_human.is_some(),
            output_schema: agent.output_schema.clone(),
            limits: serde_json::to_value(&agent.limits).unwrap_or_default(),
            instructions: caller.scopes.contains(Scope::Admin).then(|| agent.instructions.clone()),
        }
    }
}

impl FilterView {
    fn of(filter: &ToolFilter) -> Self {
        let words = |patterns: &[crate::core::pattern::NamePattern]| patterns.iter().map(ToString::to_string).collect();
        Self { allow: words(&filter.allow), deny: words(&filter.deny) }
    }
}
