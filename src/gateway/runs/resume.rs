//! `POST /v1/runs/{run}/resume`

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::asked::{Asked, Quoting};
use super::events::FrameDescription;
use super::given::Given;
use super::precondition;
use super::view::RunView;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::{Body, Path};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// Give a run what it is owed
///
/// Everything that is owed at once, or some of it with `partial`. The same resume twice is one. Nothing is taken of a resume
/// that is refused. One that gives nothing takes up what was left behind and looks at the rest: it wants `runs:read` as well.
#[utoipa::path(
    post, path = "/v1/runs/{run}/resume", tag = "runs", operation_id = "resumeRun", request_body = Given,
    params(
        ("run" = String, Path, description = "The run"),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait for the run to rest; `respond-async`: not at all"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the run that you saw; another one is refused"),
        Quoting,
    ),
    responses(
        (status = 200, description = "The run rests: it is over, or owed something; or what it does until then", content((RunView = "application/json"), (FrameDescription = "text/event-stream"))),
        (status = 202, description = "The run goes on", body = RunView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn resume(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    asked: Asked,
    Path(run): Path<String>,
    Body(given): Body<Given>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    if given.is_nothing() || asked.quotes() {
        caller.require(Scope::RunsRead)?;
    }
    if !given.decisions.is_empty() {
        caller.require(Scope::ApprovalsDecide)?;
    }
    let found = gateway.runner_of(&caller).run(&run).await?;
    let seen = precondition::required(&headers, found.row.version)?;
    let places = given.places();
    let mut resume = given.resume(&caller)?;
    resume.expected_version = resume.expected_version.or(seen);
    let placed = |error| Problem::placed(error, |refusal| places.of_refusal(refusal));
    let unmet = |error| precondition::unmet(error, seen, placed);
    let execution = found.resume(resume, asked.trace.clone(), unmet).await?;
    asked.answer(&gateway, found, execution, StatusCode::OK).await
}
