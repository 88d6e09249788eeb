//! `DELETE /v1/runs/{run}`

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use toolgate_service::Scope;

use super::precondition;
use crate::access::Authenticated;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Delete a run
///
/// Deletes the run's data permanently. Its id remains known: the run is in no list, and retrieving it returns `gone`.
/// Forks of the run keep their copies. Cancel a run before you delete it, unless it has ended.
#[utoipa::path(
    delete, path = "/v1/runs/{run}", tag = "runs", operation_id = "deleteRun",
    params(
        ("run" = String, Path, description = "The run's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the run that you saw; if the run has changed since, the request is refused"),
    ),
    responses(
        (status = 204, description = "The run is deleted, now or by an earlier request"),
    ),
)]
pub(super) async fn delete(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(run): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.require(Scope::RunsWrite)?;
    let run = gateway.runner_of(&caller).run_even_if_deleted(&run).await?;
    run.purge(precondition::required(&headers, &run.row)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
