//! `POST /v1/servers/{server}/refresh`

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

/// Refresh the tools of an MCP server
///
/// Lists the server's tools again, whatever it promises about changes. Runs in progress see the difference before their
/// next turn. Requires the scope `admin`, because all tenants share the server.
#[utoipa::path(
    post, path = "/v1/servers/{server}/refresh", tag = "tools", operation_id = "refreshServer",
    params(("server" = String, Path, description = "The configured id of the server")),
    responses(
        (status = 200, description = "The server, with its current number of tools", body = ServerHealth),
    ),
)]
pub(super) async fn refresh(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(server): Path<String>,
) -> Result<Json<ServerHealth>, Problem> {
    caller.require(Scope::Admin)?;
    let refreshed = gateway.backends().refresh(&server.as_str().into()).await.ok_or_else(|| missing(&server))?;
    refreshed.map(Json).map_err(|reason| Problem::new(ErrorCode::ToolUnavailable, reason))
}
