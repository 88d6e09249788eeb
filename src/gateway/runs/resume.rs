//! `POST /v1/runs/{run}/resume`

use axum::Json;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::given::Given;
use super::read::tag;
use super::view::RunView;
use super::wait::Patience;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::answer::traced;
use crate::gateway::body::{Body, Path};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// Give a run what it is owed
///
/// Everything that is owed at once, or some of it with `partial`. The same resume twice is one. Nothing is taken of a resume
/// that is refused.
#[utoipa::path(
    post, path = "/v1/runs/{run}/resume", tag = "runs", operation_id = "resumeRun", request_body = Given,
    params(
        ("run" = String, Path, description = "The run"),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait for the run to rest; `respond-async`: not at all"),
    ),
    responses(
        (status = 200, description = "The run rests: it is over, or owed something", body = RunView),
        (status = 202, description = "The run goes on", body = RunView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn resume(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    Path(run): Path<String>,
    Body(given): Body<Given>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    if !given.decisions.is_empty() {
        caller.require(Scope::ApprovalsDecide)?;
    }
    let patience = Patience::of(&headers, gateway.settings());
    let runner = gateway.runner_of(&caller);
    let found = runner.run(&run).await?;
    let execution = found.resume(given.resume(&caller)?, traced(&headers)).await?;
    let rests = patience.wait(execution).await?;
    let view = RunView::of(&found.row, &found.load().await?);
    let status = if rests { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, [(ETAG, tag(view.version()))], Json(view)).into_response())
}
