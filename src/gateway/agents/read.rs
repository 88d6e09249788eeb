//! `GET /v1/agents/{agent}`

use axum::Json;
use axum::extract::State;
use toolgate_service::Scope;

use super::view::AgentView;
use crate::access::Authenticated;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Retrieve an agent
#[utoipa::path(
    get, path = "/v1/agents/{agent}", tag = "tools", operation_id = "readAgent",
    params(("agent" = String, Path, description = "The name of the agent")),
    responses(
        (status = 200, description = "The agent", body = AgentView),
    ),
)]
pub(super) async fn read(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(agent): Path<String>,
) -> Result<Json<AgentView>, Problem> {
    caller.require(Scope::ToolsRead)?;
    let runner = gateway.runner_of(&caller);
    Ok(Json(AgentView::of(runner.agent(&agent)?, &caller)))
}
