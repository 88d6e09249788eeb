//! Current state of a run, in the error of a request that assumed another one. The caller decides on it what to do next,
//! without another request.

use toolgate_core::error::ErrorCode;
use toolgate_core::id::RunId;
use toolgate_core::run::Status;
use toolgate_ports::{RunFilter, RunRow};
use toolgate_runner::AgentRunner;

use super::authorize::Caller;
use super::error::ServiceError;

/// The state of a run when a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentRun {
    /// The run.
    pub id: RunId,
    /// Its status.
    pub status: Status,
    /// The length of its journal.
    pub version: u64,
}

impl CurrentRun {
    /// The state in the run's index row.
    pub fn of(row: &RunRow) -> Self {
        Self { id: row.id.clone(), status: row.status, version: row.version }
    }
}

/// Adds the current state of a run of the caller's tenant to a conflict about it.
pub(crate) async fn with_current<T>(
    runner: &AgentRunner,
    caller: &Caller,
    run: &RunId,
    result: Result<T, ServiceError>,
) -> Result<T, ServiceError> {
    match result {
        Err(error) if is_conflict(&error) && error.current.is_none() => {
            let tenant = Some(caller.tenant.clone());
            let filter = RunFilter { tenant, run: Some(run.clone()), limit: 1, ..RunFilter::default() };
            // The request is refused for the same reason whether or not the state can be read.
            let row = runner.list(&filter).await.ok().and_then(|mut rows| rows.pop());
            Err(ServiceError { current: row.map(|row| Box::new(CurrentRun::of(&row))), ..error })
        }
        result => result,
    }
}

fn is_conflict(error: &ServiceError) -> bool {
    matches!(error.code, ErrorCode::Conflict | ErrorCode::PreconditionFailed)
}
