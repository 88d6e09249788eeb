//! Current state of a run or session, in the error of a request that assumed another one. The caller decides on it what
//! to do next, without another request.

use toolgate_core::id::{RunId, SessionId};
use toolgate_core::run::Status;
use toolgate_ports::{RunRow, SessionHead, SessionRow};

/// The state of a run or session when a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurrentState {
    Run {
        id: RunId,
        status: Status,
        /// The length of its journal.
        version: u64,
    },
    Session {
        id: SessionId,
        /// Its latest run.
        head: Option<SessionHead>,
        version: u64,
    },
}

impl CurrentState {
    /// The state in a run's index row.
    pub fn of_run(row: &RunRow) -> Self {
        Self::Run { id: row.id.clone(), status: row.status, version: row.version }
    }

    /// The state of the latest run of a session.
    pub(crate) fn of_head(head: &SessionHead) -> Self {
        Self::Run { id: head.run.clone(), status: head.status, version: head.version }
    }

    /// The state of a session.
    pub(crate) fn of_session(row: &SessionRow) -> Self {
        Self::Session { id: row.id.clone(), head: row.head.clone(), version: row.version }
    }
}
