//! `DELETE /v1/runs/{run}`

use axum::http::StatusCode;
use toolgate_service::TenantRunner;

use crate::body::Path;
use crate::etag::IfMatch;
use crate::problem::Problem;

/// Delete a run
///
/// Deletes the run's data permanently. Its id remains known: the run is in no list, and retrieving it returns `gone`.
/// Forks of the run keep their copies. Cancel a run before you delete it, unless it has ended.
#[utoipa::path(
    delete, path = "/v1/runs/{run}", tag = "runs", operation_id = "deleteRun",
    params(IfMatch),
    responses((status = 204, description = "The run is deleted, now or by an earlier request")),
)]
pub(super) async fn delete(
    runner: TenantRunner,
    if_match: IfMatch,
    Path(run): Path<String>,
) -> Result<StatusCode, Problem> {
    let run = runner.run_even_if_deleted(&run).await?;
    run.purge(if_match.of_run(&run.row)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
