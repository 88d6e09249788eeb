//! `POST /v1/runs/{run}/cancel`

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use utoipa::ToSchema;

use super::precondition;
use super::view::RunView;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::{Body, Path};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// Why a run is to stop.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    /// For whoever reads of it later.
    reason: Option<String>,
}

/// Stop a run
///
/// Calls under way are cancelled. A run that is over stays as it is, and is shown to those who may read it.
#[utoipa::path(
    post, path = "/v1/runs/{run}/cancel", tag = "runs", operation_id = "cancelRun", request_body = Cancel,
    params(
        ("run" = String, Path, description = "The run"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the run that you saw; another one is refused"),
    ),
    responses(
        (status = 200, description = "The run, over", body = RunView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn cancel(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
    Path(run): Path<String>,
    Body(Cancel { reason }): Body<Cancel>,
) -> Result<Json<RunView>, Problem> {
    caller.require(Scope::RunsWrite)?;
    let run = gateway.runner_of(&caller).run(&run).await?;
    let seen = precondition::required(&headers, run.row.version)?;
    let was_over = run.row.status.is_ended()
        || match run.cancel(reason, seen, |error| precondition::unmet(error, seen, Problem::from)).await {
            Ok(_) => false,
            // Whoever was quicker ended it, and that is as good, unless it was to be stopped only as it was seen.
            Err(_) if seen.is_none() && run.load().await?.ending().is_some() => true,
            Err(problem) => return Err(problem),
        };
    if was_over {
        // Nothing was done to it, and it is only looked at.
        caller.require(Scope::RunsRead)?;
    }
    Ok(Json(run.view().await?))
}
