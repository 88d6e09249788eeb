//! `DELETE /v1/approval-grants/{grant}`

use axum::Json;
use axum::extract::State;
use toolgate_service::Scope;

use super::view::GrantView;
use crate::access::Authenticated;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Revoke a grant
///
/// Calls that rely on the grant and were not yet sent require approval again. Revoking a grant twice has no further
/// effect.
#[utoipa::path(
    delete, path = "/v1/approval-grants/{grant}", tag = "approvals", operation_id = "revokeApprovalGrant",
    params(("grant" = String, Path, description = "The grant's id")),
    responses(
        (status = 200, description = "The revoked grant", body = GrantView),
    ),
)]
pub(super) async fn revoke(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(grant): Path<String>,
) -> Result<Json<GrantView>, Problem> {
    caller.require(Scope::ApprovalsDecide)?;
    let runner = gateway.runner_of(&caller);
    let revoked = runner.revoke(&grant).await?;
    Ok(Json(GrantView::of(revoked, runner.now())))
}
