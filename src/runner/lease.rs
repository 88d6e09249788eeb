//! Lease renewal for the active runs of this process.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use toolgate_core::id::RunId;
use toolgate_driver::Store;

use super::Inner;
use super::registry::{ActiveRun, ActiveRuns, RunGuard};

/// Tests use a lease of zero, but an interval of zero panics.
const SHORTEST: Duration = Duration::from_millis(1);

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

/// Renews the leases of active runs at a third of their duration, until no run is active. Leases of released runs
/// expire, so that another process can claim these runs.
async fn keep_leases(active_runs: Arc<ActiveRuns>, store: Store) {
    let mut due = tokio::time::interval((store.lease / 3).max(SHORTEST));
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    due.reset();
    loop {
        let renew = tokio::select! {
            _ = due.tick() => true,
            () = active_runs.emptied.notified() => false,
        };
        if active_runs.has_come_to_rest() {
            return;
        }
        if !renew {
            continue;
        }
        if let Err(error) = store.runs.renew(&store.node, &active_runs.runs(), store.lease).await {
            tracing::warn!(%error, "leases could not be renewed; another process may take the runs over");
        }
    }
}
