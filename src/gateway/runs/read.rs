//! `GET /v1/runs/{run}`

use axum::extract::{FromRequestParts as _, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use toolgate_core::id::RunId;
use toolgate_service::{Caller, Scope};

use super::response_mode::ResponsePreference;
use super::view::RunView;
use crate::access::{Authenticated, ReadPermit};
use crate::body::Path;
use crate::etag;
use crate::problem::Problem;
use crate::state::Gateway;

/// Retrieve a run
#[utoipa::path(
    get, path = "/v1/runs/{run}", tag = "runs", operation_id = "readRun",
    params(("run" = String, Path, description = "The run's id"), ("If-None-Match" = Option<String>, Header, description = "The `ETag` that you have")),
    responses(
        (status = 200, description = "The run", body = RunView),
        (status = 304, description = "The run has not changed"),
    ),
)]
pub(super) async fn read(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(run): Path<String>,
    _permit: ReadPermit,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsRead)?;
    let run = gateway.runner_of(&caller).run(&run).await?;
    let view = RunView::read(&run).await?;
    Ok(etag::unless_known(&headers, etag::of_version(view.version()), view))
}

/// The current state of a run, as the response to a repeated request that started it.
pub(crate) async fn current(
    gateway: &Gateway,
    caller: &Caller,
    parts: &Parts,
    run: &RunId,
) -> Result<Response, Problem> {
    let asked = ResponsePreference::from_request_parts(&mut parts.clone(), gateway).await?;
    let found = gateway.runner_of(caller).run(run.as_str()).await?;
    asked.answer_again(gateway, found).await
}
