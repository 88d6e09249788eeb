//! `GET /v1/servers`

use axum::Json;
use axum::extract::State;

use crate::gateway::access::Authenticated;
use crate::gateway::backends::ServerHealth;
use crate::gateway::pagination::Page;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::service::Scope;

/// List MCP servers
///
/// Returns the last known state of each server; the request contacts no server.
#[utoipa::path(
    get, path = "/v1/servers", tag = "tools", operation_id = "listServers",
    responses(
        (status = 200, description = "All servers, by id", body = Page<ServerHealth>),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
) -> Result<Json<Page<ServerHealth>>, Problem> {
    caller.require(Scope::ToolsRead)?;
    let servers = gateway.backends().servers();
    Ok(Json(Page::whole(servers, |server| server.id.to_string(), |server| server)))
}
