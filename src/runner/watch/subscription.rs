//! Subscription to a run: what a surface needs to watch it, whichever process executes it.

use std::sync::Arc;
use std::time::Duration;

use toolgate_core::id::RunId;
use toolgate_core::run::JournalEntry;
use toolgate_driver::DriveError;
use toolgate_ports::{RunFilter, RunRow, RunStore};

use super::poller::Poller;
use super::{Broadcaster, Watch};
use crate::registry::ActiveRuns;
use crate::{AgentRunner, Inner, RunnerError};

/// Access to one run for watchers: live updates, missed events, and the existence of the run. It holds no part of the
/// runner, so that a replaced configuration is freed however long watchers stay.
#[derive(Clone)]
pub struct RunSubscription {
    run: RunId,
    runs: Arc<dyn RunStore>,
    broadcaster: Arc<Broadcaster>,
    poller: Arc<Poller>,
    active_runs: Arc<ActiveRuns>,
}

impl AgentRunner {
    /// Access for watchers of a run, whichever process executes it.
    pub fn subscription(&self, run: &RunId) -> RunSubscription {
        let Inner { ports, broadcaster, poller, active_runs, .. } = &*self.inner;
        RunSubscription {
            run: run.clone(),
            runs: ports.store.runs.clone(),
            broadcaster: broadcaster.clone(),
            poller: poller.clone(),
            active_runs: active_runs.clone(),
        }
    }
}

impl RunSubscription {
    /// The updates from now on, in this process.
    pub fn watch(&self) -> Watch {
        self.broadcaster.watch(&self.run)
    }

    /// Makes watches of this run report events of other processes: one query of the store about every `interval` for
    /// all watched runs. Call it after [`watch`](Self::watch), within an async runtime.
    pub fn follow(&self, interval: Duration) {
        self.poller.start(&self.runs, &self.active_runs, interval);
    }

    /// The events from a position on; empty if there are none yet.
    pub async fn facts(&self, from: u64) -> Result<Vec<JournalEntry>, RunnerError> {
        Ok(self.runs.load(&self.run, from).await.map_err(DriveError::from)?)
    }

    /// The current index row, also of a deleted run.
    pub async fn row(&self) -> Result<RunRow, RunnerError> {
        let filter = RunFilter { run: Some(self.run.clone()), purged: true, limit: 1, ..RunFilter::default() };
        let row = self.runs.list(&filter).await.map_err(DriveError::from)?.into_iter().next();
        row.ok_or_else(|| RunnerError::NoSuchRun(self.run.clone()))
    }
}
