//! `POST /v1/runs/{run}/cancel`

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use toolgate_service::{Scope, ServiceError};
use utoipa::ToSchema;

use super::precondition;
use super::view::RunView;
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::problem::Problem;
use crate::state::Gateway;

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
    params(
        ("run" = String, Path, description = "The run's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the run that you saw; if the run has changed since, the request is refused"),
    ),
    responses(
        (status = 200, description = "The run, which has ended, or first undoes its calls", body = RunView),
    ),
)]
pub(super) async fn cancel(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(run): Path<String>,
    Body(Cancel { reason }): Body<Cancel>,
) -> Result<Json<RunView>, Problem> {
    caller.require(Scope::RunsWrite)?;
    let run = gateway.runner_of(&caller).run(&run).await?;
    let seen = precondition::required(&headers, &run.row)?;
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
        caller.require(Scope::RunsRead)?;
    }
    Ok(Json(RunView::read(&run).await?))
}
