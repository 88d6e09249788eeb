//! `DELETE /v1/runs/{run}`

use axum::extract::State;
use axum::http::StatusCode;

use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::Path;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// Delete what a run holds
///
/// For good. Only that it was there stays known; it is in no list, and asked for is `gone`. Forks of it keep their copies. A run
/// that is not over is to be cancelled first.
#[utoipa::path(
    delete, path = "/v1/runs/{run}", tag = "runs", operation_id = "deleteRun",
    params(("run" = String, Path, description = "The run")),
    responses(
        (status = 204, description = "It is deleted, perhaps since earlier"),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn delete(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.require(Scope::RunsWrite)?;
    gateway.runner_of(&caller).run_or_what_is_left(&run).await?.purge().await?;
    Ok(StatusCode::NO_CONTENT)
}
