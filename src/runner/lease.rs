//! Lease renewal for the active runs of this process.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolgate_core::id::RunId;
use toolgate_driver::Store;

use super::Inner;
use super::registry::{ActiveRun, ActiveRuns, RunGuard};

/// Tests use a lease of zero.
const SHORTEST: Duration = Duration::from_millis(1);
/// The time between two renewals, if they are fast and the lease is not shorter.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);
/// Renewals take at most this fraction of the time, unless a lease would expire.
const SHARE: u32 = 20;

impl Inner {
    /// Claims a run and keeps its lease, or returns the handle to its current execution.
    pub(super) fn claim(&self, run: &RunId) -> Result<RunGuard, ActiveRun> {
        let guard = self.active_runs.claim(run)?;
        if self.active_runs.lacks_renewal() {
            // The renewal task must not depend on this runner, because a reload may replace it.
            self.tasks.spawn(keep_leases(self.active_runs.clone(), self.ports.store.clone()));
        }
        Ok(guard)
    }
}

/// Renews the leases of active runs, until no run is active. Leases of released runs expire, so that another process can
/// claim these runs. Renewals are more frequent than the leases require, because the last one is the last sign of life of a
/// killed process, where its spans end; but they take a small part of the time of the store.
async fn keep_leases(active_runs: Arc<ActiveRuns>, store: Store) {
    let longest = (store.lease / 3).max(SHORTEST);
    let shortest = longest.min(SIGN_OF_LIFE);
    let mut due = Instant::now() + shortest;
    loop {
        let renew = tokio::select! {
            () = sleep_until(due) => true,
            () = active_runs.emptied.notified() => false,
        };
        if active_runs.has_come_to_rest() {
            return;
        }
        if !renew {
            continue;
        }
        let began = Instant::now();
        if let Err(error) = store.runs.renew(&store.node, &active_runs.runs(), store.lease).await {
            tracing::warn!(%error, "leases could not be renewed; another process may take the runs over");
        }
        due = Instant::now() + (began.elapsed() * SHARE).clamp(shortest, longest);
    }
}
