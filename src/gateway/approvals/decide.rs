//! `POST /v1/approvals/{approval}/decision`

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use toolgate_service::{Scope, Verdict};

use super::read::approval_view;
use super::view::ApprovalView;
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::problem::Problem;
use crate::request_id::traced;
use crate::state::Gateway;

/// Decide an approval
///
/// Approves or denies a call. The run resumes in the background; the response does not wait for it. Repeating the same
/// decision has no further effect. If another decision was made before, the code is `conflict`; if the approval is no
/// longer pending, it is `gone`.
#[utoipa::path(
    post, path = "/v1/approvals/{approval}/decision", tag = "approvals", operation_id = "decideApproval",
    request_body = Verdict, params(("approval" = String, Path, description = "The approval")),
    responses(
        (status = 200, description = "The approval as it is now", body = ApprovalView),
    ),
)]
pub(super) async fn decide(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(id): Path<String>,
    Body(verdict): Body<Verdict>,
) -> Result<Json<ApprovalView>, Problem> {
    caller.require(Scope::ApprovalsDecide)?;
    let decided = gateway.runner_of(&caller).decide(&id, verdict, traced(&headers)).await?;
    approval_view(&decided)
}
