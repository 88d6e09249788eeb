//! `GET /v1/approvals/{approval}`

use axum::Json;
use axum::extract::State;
use toolgate_service::{Approval, Scope};

use super::view::ApprovalView;
use crate::access::{Authenticated, ReadPermit};
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Retrieve an approval
///
/// Also returns approvals that are decided, expired or withdrawn.
#[utoipa::path(
    get, path = "/v1/approvals/{approval}", tag = "approvals", operation_id = "readApproval",
    params(("approval" = String, Path, description = "The approval")),
    responses(
        (status = 200, description = "The approval", body = ApprovalView),
    ),
)]
pub(super) async fn read(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(approval): Path<String>,
    _permit: ReadPermit,
) -> Result<Json<ApprovalView>, Problem> {
    caller.require(Scope::ApprovalsRead)?;
    approval_view(&gateway.runner_of(&caller).approval(&approval).await?)
}

/// The response with an approval.
pub(super) fn approval_view(approval: &Approval) -> Result<Json<ApprovalView>, Problem> {
    ApprovalView::of(approval).map(Json).ok_or_else(|| Problem::not_found("approval", &approval.id().to_string()))
}
