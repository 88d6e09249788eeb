//! Current state of a run, in the error of a request that assumed another one. The caller decides on it what to do next,
//! without another request.

use toolgate_core::id::RunId;
use toolgate_core::run::Status;
use toolgate_ports::{RunRow, SessionHead};

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

    /// The state of the latest run of a session.
    pub(crate) fn of_head(head: &SessionHead) -> Self {
        Self { id: head.run.clone(), status: head.status, version: head.version }
    }
}
