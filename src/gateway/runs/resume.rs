//! `POST /v1/runs/{run}/resume`

use axum::http::StatusCode;
use axum::response::Response;
use toolgate_service::{Answers, Scope, ServiceError, TenantRunner};

use super::response_mode::{ResponsePreference, RestedRun, RunningRun};
use crate::body::{Body, Path};
use crate::etag::IfMatch;
use crate::precondition;
use crate::problem::Problem;

/// Resume a run
///
/// Submits all required actions of a run, or some of them with `partial`. Repeating the same resume has no further
/// effect. If a resume is refused, no part of it is stored. An empty resume continues an orphaned run, or only returns
/// the run; it also requires the scope `runs:read`.
#[utoipa::path(
    post, path = "/v1/runs/{run}/resume", tag = "runs", operation_id = "resumeRun", request_body = Answers,
    params(IfMatch, ResponsePreference),
    responses((status = 200, response = inline(RestedRun)), (status = 202, response = inline(RunningRun))),
)]
pub(super) async fn resume(
    runner: TenantRunner,
    if_match: IfMatch,
    preference: ResponsePreference,
    Path(run): Path<String>,
    Body(answers): Body<Answers>,
) -> Result<Response, Problem> {
    if answers.is_nothing() || preference.quotes() {
        runner.caller().require(Scope::RunsRead)?;
    }
    if answers.has_decisions() || answers.raises_limits() {
        runner.caller().require(Scope::ApprovalsDecide)?;
    }
    let found = runner.run(&run).await?;
    let seen = if_match.of_run(&found.row)?;
    let places = answers.places();
    let mut resume = found.input_of(answers)?;
    resume.expected_version = resume.expected_version.or(seen);
    let to_error = |error| ServiceError::at_fields(error, |refusal| places.of_refusal(refusal));
    let unmet = |error| precondition::unmet(error, seen, to_error);
    let execution = found.resume(resume, preference.trace.clone(), unmet).await?;
    preference.answer(found, execution, StatusCode::OK).await
}
