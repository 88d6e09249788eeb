//! `POST /v1/servers/{server}/restart`

use axum::Json;
use axum::extract::State;
use toolgate_core::error::ErrorCode;
use toolgate_service::Scope;

use super::read::missing;
use crate::access::Authenticated;
use crate::backends::ServerHealth;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Restart an MCP server
///
/// Closes the connection to the server, or ends its process, together with the calls in progress there, and starts it
/// again. Requires the scope `admin`, because all tenants share the server.
#[utoipa::path(
    post, path = "/v1/servers/{server}/restart", tag = "tools", operation_id = "restartServer",
    params(("server" = String, Path, description = "The configured id of the server")),
    responses(
        (status = 200, description = "The restarted server", body = ServerHealth),
    ),
)]
pub(super) async fn restart(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(server): Path<String>,
) -> Result<Json<ServerHealth>, Problem> {
    caller.require(Scope::Admin)?;
    let restarted = gateway.backends().restart(&server.as_str().into()).await.ok_or_else(|| missing(&server))?;
    restarted.map(Json).map_err(|reason| Problem::new(ErrorCode::ToolUnavailable, reason))
}
