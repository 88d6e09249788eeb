//! `POST /v1/approvals/{approval}/decision`

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;

use super::read::shown;
use super::view::InboxView;
use crate::core::error::ErrorCode;
use crate::core::run::Decision;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::answer::traced;
use crate::gateway::body::{Body, Path};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::runs::GivenVerdict;
use crate::gateway::state::Gateway;
use crate::gateway::tenant::{Approval, Fate};

/// Decide about a call
///
/// The run goes on by itself, and is not waited for. The same decision twice is one. What was decided otherwise is a
/// `conflict`, and what is not asked any more is `gone`.
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
        let detail = "what is asked is not what you saw (`seen`); look at it again and decide anew";
        return Err(settled(detail));
    }
    let decision = verdict.decision(&caller.name);
    if is_open(&approval, &decision)?
        && let Err(problem) = approval.decide(decision.clone(), traced(&headers)).await
    {
        // Somebody may have been quicker; what they said is what counts then.
        if is_open(&runner.approval(&id).await?, &decision)? {
            return Err(problem);
        }
    }
    shown(&runner, &id).await
}

/// Whether there is something to be decided. The error says why there is not, unless this is what was decided.
fn is_open(approval: &Approval, decision: &Decision) -> Result<bool, Problem> {
    match &approval.fate {
        Fate::Decided { decision: made, .. } if made.is_repeated_by(decision) => Ok(false),
        Fate::Decided { decision: made, .. } => {
            let detail = format!("`{}` has decided about this already, and otherwise or in other words", made.by);
            Err(settled(detail))
        }
        fate @ (Fate::Pending | Fate::Expired | Fate::Withdrawn) => over(fate).map_or(Ok(true), Err),
    }
}

/// Why nothing more is taken for an approval; `None` while something is.
pub(super) fn over(fate: &Fate) -> Option<Problem> {
    let gone = |detail: &str| Problem::new(ErrorCode::Gone, detail);
    Some(match fate {
        Fate::Pending => return None,
        Fate::Decided { decision, .. } => settled(format!("`{}` has decided about this already", decision.by)),
        Fate::Expired => gone("nobody decided about this in time, and nothing is taken for it any more"),
        Fate::Withdrawn => gone("this is not asked any more: its run is over, or asks something else"),
    })
}

/// A conflict that trying again does not solve.
fn settled(detail: impl Into<String>) -> Problem {
    Problem::lasting_conflict(detail)
}
