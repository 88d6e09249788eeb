//! `GET /v1/servers/{server}`

use axum::Json;
use axum::extract::State;
use toolgate_service::Scope;

use crate::access::Authenticated;
use crate::backends::ServerHealth;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Retrieve an MCP server
///
/// Returns the last known state of the server.
#[utoipa::path(
    get, path = "/v1/servers/{server}", tag = "tools", operation_id = "readServer",
    params(("server" = String, Path, description = "The configured id of the server")),
    responses(
        (status = 200, description = "The server", body = ServerHealth),
    ),
)]
pub(super) async fn read(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(server): Path<String>,
) -> Result<Json<ServerHealth>, Problem> {
    caller.require(Scope::ToolsRead)?;
    let found = gateway.backends().servers().into_iter().find(|health| health.id.as_str() == server);
    found.map(Json).ok_or_else(|| missing(&server))
}

pub(super) fn missing(server: &str) -> Problem {
    Problem::not_found("MCP server", server)
}
