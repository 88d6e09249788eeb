//! `GET /v1/servers`

use axum::Json;
use axum::extract::State;
use toolgate_service::Scope;

use crate::access::Authenticated;
use crate::backends::ServerHealth;
use crate::pagination::Page;
use crate::problem::Problem;
use crate::state::Gateway;

/// List MCP servers
///
/// Returns the last known state of each server; the request contacts no server.
#[utoipa::path(
    get, path = "/v1/servers", tag = "tools", operation_id = "listServers",
    responses(
        (status = 200, description = "All servers, by id", body = Page<ServerHealth>),
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
