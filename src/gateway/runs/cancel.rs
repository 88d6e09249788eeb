//! `POST /v1/runs/{run}/cancel`

use axum::Json;
use serde::Deserialize;
use toolgate_service::{Scope, ServiceError, TenantRunner};
use utoipa::ToSchema;

use super::view::RunView;
use crate::body::{Body, Path};
use crate::etag::IfMatch;
use crate::precondition;
use crate::problem::Problem;

/// A request to cancel a run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cancel {
    /// The reason, for later readers.
    reason: Option<String>,
}

/// Cancel a run
///
/// Calls in progress are cancelled as well. A run of an agent that compensates first undoes the calls that took effect, and
/// ends then; cancelling it again ends it without that. A run that has ended does not change; it is returned to callers that may
/// read it.
#[utoipa::path(
    post, path = "/v1/runs/{run}/cancel", tag = "runs", operation_id = "cancelRun", request_body = Cancel,
    params(IfMatch),
    responses((status = 200, description = "The run, which has ended, or first undoes its calls", body = RunView)),
)]
pub(super) async fn cancel(
    runner: TenantRunner,
    if_match: IfMatch,
    Path(run): Path<String>,
    Body(Cancel { reason }): Body<Cancel>,
) -> Result<Json<RunView>, Problem> {
    let run = runner.run(&run).await?;
    let seen = if_match.of_run(&run.row)?;
    let was_over = run.row.status.is_ended()
        || match run.cancel(reason, seen, |error| precondition::unmet(error, seen, ServiceError::from)).await {
            Ok(_) => false,
            // Another request ended it first, which is as good, unless the client wanted to cancel only the state it
            // saw.
            Err(_) if seen.is_none() && run.load().await?.ending().is_some() => true,
            Err(error) => return Err(error.into()),
        };
    if was_over {
        // The request changed nothing and only reads the run.
        runner.caller().require(Scope::RunsRead)?;
    }
    Ok(Json(RunView::read(&run).await?))
}
