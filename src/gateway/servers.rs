//! `/v1/servers`: the MCP servers, which all tenants share.

use axum::Json;
use axum::extract::State;
use toolgate_core::error::ErrorCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Authorized;
use crate::backends::ServerHealth;
use crate::body::Path;
use crate::pagination::{Page, PageResult};
use crate::problem::Problem;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(read)).routes(routes!(refresh)).routes(routes!(restart))
}

/// List MCP servers
///
/// Returns the last known state of each server; the request contacts no server.
#[utoipa::path(
    get, path = "/v1/servers", tag = "tools", operation_id = "listServers",
    responses((status = 200, description = "All servers, by id", body = Page<ServerHealth>)),
)]
async fn list(State(gateway): State<Gateway>, _caller: Authorized) -> PageResult<ServerHealth> {
    let servers = gateway.backends().servers();
    Ok(Json(Page::whole(servers, |server| server.id.to_string(), |server| server)))
}

/// Retrieve an MCP server
///
/// Returns the last known state of the server.
#[utoipa::path(
    get, path = "/v1/servers/{server}", tag = "tools", operation_id = "readServer",
    responses((status = 200, description = "The server", body = ServerHealth)),
)]
async fn read(
    State(gateway): State<Gateway>,
    _caller: Authorized,
    Path(server): Path<String>,
) -> Result<Json<ServerHealth>, Problem> {
    let found = gateway.backends().servers().into_iter().find(|health| health.id.as_str() == server);
    found.map(Json).ok_or_else(|| missing(&server))
}

fn missing(server: &str) -> Problem {
    Problem::not_found("MCP server", server)
}

/// Refresh the tools of an MCP server
///
/// Lists the server's tools again, whatever it promises about changes. Runs in progress see the difference before their
/// next turn. Requires the scope `admin`, because all tenants share the server.
#[utoipa::path(
    post, path = "/v1/servers/{server}/refresh", tag = "tools", operation_id = "refreshServer",
    responses((status = 200, description = "The server, with its current number of tools", body = ServerHealth)),
)]
async fn refresh(
    State(gateway): State<Gateway>,
    _caller: Authorized,
    Path(server): Path<String>,
) -> Result<Json<ServerHealth>, Problem> {
    let refreshed = gateway.backends().refresh(&server.as_str().into()).await.ok_or_else(|| missing(&server))?;
    refreshed.map(Json).map_err(|reason| Problem::new(ErrorCode::ToolUnavailable, reason))
}

/// Restart an MCP server
///
/// Closes the connection to the server, or ends its process, together with the calls in progress there, and starts it
/// again. Requires the scope `admin`, because all tenants share the server.
#[utoipa::path(
    post, path = "/v1/servers/{server}/restart", tag = "tools", operation_id = "restartServer",
    responses((status = 200, description = "The restarted server", body = ServerHealth)),
)]
async fn restart(
    State(gateway): State<Gateway>,
    _caller: Authorized,
    Path(server): Path<String>,
) -> Result<Json<ServerHealth>, Problem> {
    let restarted = gateway.backends().restart(&server.as_str().into()).await.ok_or_else(|| missing(&server))?;
    restarted.map(Json).map_err(|reason| Problem::new(ErrorCode::ToolUnavailable, reason))
}
