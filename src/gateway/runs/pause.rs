//! `POST /v1/runs/{run}/pause`

use axum::Json;
use serde::Deserialize;
use toolgate_service::{Scope, ServiceError, TenantRunner};
use utoipa::ToSchema;

use super::view::RunView;
use crate::body::{Body, Path};
use crate::etag::IfMatch;
use crate::precondition;
use crate::problem::Problem;

/// A request to pause a run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pause {
    /// The reason, which readers of the pending item see.
    reason: Option<String>,
}

/// Pause a run
///
/// The run stops between two steps. A model call or tool calls in progress settle first, and their results are kept;
/// until then the run is `running`. Then it is `pending` with an item of kind `pause`, until a resume with
/// `"continue": true`. Deadlines continue. A paused run does not change.
#[utoipa::path(
    post, path = "/v1/runs/{run}/pause", tag = "runs", operation_id = "pauseRun", request_body = Pause,
    params(IfMatch),
    responses(
        (status = 200, description = "The run, which is paused, or will be once its step in progress has settled", body = RunView),
    ),
)]
pub(super) async fn pause(
    runner: TenantRunner,
    if_match: IfMatch,
    Path(run): Path<String>,
    Body(Pause { reason }): Body<Pause>,
) -> Result<Json<RunView>, Problem> {
    let run = runner.run(&run).await?;
    let seen = if_match.of_run(&run.row)?;
    let paused = run.pause(reason, seen, |error| precondition::unmet(error, seen, ServiceError::from)).await?;
    if paused.version == run.row.version {
        // The request changed nothing and only reads the run.
        runner.caller().require(Scope::RunsRead)?;
    }
    Ok(Json(RunView::read(&run).await?))
}
