//! `GET /v1/agents`

use axum::Json;
use axum::extract::State;
use toolgate_service::Scope;

use super::view::AgentView;
use crate::access::Authenticated;
use crate::pagination::Page;
use crate::problem::Problem;
use crate::state::Gateway;

/// List agents
#[utoipa::path(
    get, path = "/v1/agents", tag = "tools", operation_id = "listAgents",
    responses(
        (status = 200, description = "All agents, by name", body = Page<AgentView>),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
) -> Result<Json<Page<AgentView>>, Problem> {
    caller.require(Scope::ToolsRead)?;
    let runner = gateway.runner_of(&caller);
    let agents = runner.agents().collect();
    Ok(Json(Page::whole(agents, |agent| agent.name.to_string(), |agent| AgentView::of(agent, &caller))))
}
