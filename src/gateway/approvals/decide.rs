//! `POST /v1/approvals/{approval}/decision`

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;

use super::read::shown;
use super::view::InboxView;
use crate::core::error::ErrorCode;
use crate::core::run::Decision;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::{Body, Path};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::request_id::traced;
use crate::gateway::runs::resume_body::GivenVerdict;
use crate::gateway::state::Gateway;
use crate::gateway::tenant::{Approval, ApprovalState};

/// Decide an approval
///
/// Approves or denies a call. The run resumes in the background; the response does not wait for it. Repeating the same
/// decision has no further effect. If another decision was made before, the code is `conflict`; if the approval is no
/// longer pending, it is `gone`.
#[utoipa::path(
    post, path = "/v1/approvals/{approval}/decision", tag = "approvals", operation_id = "decideApproval",
    request_body = GivenVerdict, params(("approval" = String, Path, description = "The approval")),
    responses(
        (status = 200, description = "The approval as it is now", body = InboxView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn decide(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    Path(id): Path<String>,
    Body(verdict): Body<GivenVerdict>,
) -> Result<Json<InboxView>, Problem> {
    caller.require(Scope::ApprovalsDecide)?;
    let runner = gateway.runner_of(&caller);
    let approval = runner.approval(&id).await?;
    if verdict.seen().is_some_and(|seen| approval.digest().as_deref() != Some(seen)) {
        let detail = "this is not the call that you saw (`seen`); read the approval again and decide again";
        return Err(settled(detail));
    }
    let decision = verdict.decision(&caller.name);
    if is_open(&approval, &decision)?
        && let Err(problem) = approval.decide(decision.clone(), traced(&headers)).await
    {
        // Another approver may have been quicker; that decision counts then.
        if is_open(&runner.approval(&id).await?, &decision)? {
            return Err(problem);
        }
    }
    shown(&runner, &id).await
}

/// Whether a decision is still missing. The error says why an approval is closed, unless this very decision was made.
fn is_open(approval: &Approval, decision: &Decision) -> Result<bool, Problem> {
    match &approval.fate {
        ApprovalState::Decided { decision: made, .. } if made.is_repeated_by(decision) => Ok(false),
        ApprovalState::Decided { decision: made, .. } => {
            let detail = format!("`{}` has already made another decision about this", made.by);
            Err(settled(detail))
        }
        fate @ (ApprovalState::Pending | ApprovalState::Expired | ApprovalState::Withdrawn) => {
            over(fate).map_or(Ok(true), Err)
        }
    }
}

/// Why an approval accepts no decision; `None` while it does.
pub(super) fn over(fate: &ApprovalState) -> Option<Problem> {
    let gone = |detail: &str| Problem::new(ErrorCode::Gone, detail);
    Some(match fate {
        ApprovalState::Pending => return None,
        ApprovalState::Decided { decision, .. } => settled(format!("`{}` has already decided this", decision.by)),
        ApprovalState::Expired => gone("this approval expired before a decision was made"),
        ApprovalState::Withdrawn => gone("this approval was withdrawn: its run has ended, or requires another one"),
    })
}

/// A conflict that a retry does not solve.
fn settled(detail: impl Into<String>) -> Problem {
    Problem::lasting_conflict(detail)
}
