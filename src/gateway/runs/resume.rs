//! `POST /v1/runs/{run}/resume`

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use toolgate_service::{Answers, Scope, ServiceError};

use super::events::FrameDescription;
use super::precondition;
use super::response_mode::{ResponsePreference, StreamParams};
use super::view::RunView;
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::problem::Problem;
use crate::state::Gateway;

/// Resume a run
///
/// Submits all required actions of a run, or some of them with `partial`. Repeating the same resume has no further
/// effect. If a resume is refused, no part of it is stored. An empty resume continues an orphaned run, or only returns
/// the run; it also requires the scope `runs:read`.
#[utoipa::path(
    post, path = "/v1/runs/{run}/resume", tag = "runs", operation_id = "resumeRun", request_body = Answers,
    params(
        ("run" = String, Path, description = "The run's id"),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait until the run is pending or has ended; `respond-async`: do not wait"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the run that you saw; if the run has changed since, the request is refused"),
        StreamParams,
    ),
    responses(
        (status = 200, description = "The run, which is pending or has ended; or a stream of its events until then", content((RunView = "application/json"), (FrameDescription = "text/event-stream"))),
        (status = 202, description = "The run, which is still running", body = RunView),
    ),
)]
pub(super) async fn resume(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    preference: ResponsePreference,
    Path(run): Path<String>,
    Body(answers): Body<Answers>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    if answers.is_nothing() || preference.quotes() {
        caller.require(Scope::RunsRead)?;
    }
    if answers.has_decisions() || answers.raises_limits() {
        caller.require(Scope::ApprovalsDecide)?;
    }
    let found = gateway.runner_of(&caller).run(&run).await?;
    let seen = precondition::required(&headers, &found.row)?;
    let places = answers.places();
    let mut resume = found.input_of(answers)?;
    resume.expected_version = resume.expected_version.or(seen);
    let to_error = |error| ServiceError::at_fields(error, |refusal| places.of_refusal(refusal));
    let unmet = |error| precondition::unmet(error, seen, to_error);
    let execution = found.resume(resume, preference.trace.clone(), unmet).await?;
    preference.answer(&gateway, found, execution, StatusCode::OK).await
}
