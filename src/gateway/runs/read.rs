//! `GET /v1/runs/{run}`

use axum::Json;
use axum::extract::State;
use axum::http::header::{ETAG, IF_NONE_MATCH, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::view::RunView;
use crate::core::id::RunId;
use crate::core::run::Status;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::Path;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// Read a run
#[utoipa::path(
    get, path = "/v1/runs/{run}", tag = "runs", operation_id = "readRun",
    params(("run" = String, Path, description = "The run"), ("If-None-Match" = Option<String>, Header, description = "The `ETag` you have")),
    responses(
        (status = 200, description = "The run", body = RunView),
        (status = 304, description = "It is as you have it"),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn read(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    Path(run): Path<String>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsRead)?;
    let run = gateway.runner_of(&caller).run(&run).await?;
    let view = RunView::of(&run.row, &run.load().await?);
    let tag = tag(view.version());
    let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    if known.flat_map(|value| value.split(',')).any(|known| known.trim() == tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    Ok(([(ETAG, tag)], Json(view)).into_response())
}

/// A run that was started before, as the answer to a repeated request for it.
pub(in crate::gateway) async fn current(
    gateway: &Gateway,
    caller: &Caller,
    _headers: &HeaderMap,
    run: &RunId,
) -> Result<Response, Problem> {
    let found = gateway.runner_of(caller).run(run.as_str()).await?;
    let view = RunView::of(&found.row, &found.load().await?);
    let status = if found.row.status == Status::Running { StatusCode::ACCEPTED } else { StatusCode::CREATED };
    let location = format!("{}/v1/runs/{run}", gateway.settings().public_url);
    Ok((status, [(LOCATION, location)], Json(view)).into_response())
}

/// The version of a run as a header has it.
pub(super) fn tag(version: u64) -> String {
    format!("\"{version}\"")
}
