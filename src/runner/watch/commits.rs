//! Subscription to the commits of a tenant: what a surface needs to follow all of its runs, whichever process writes them.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use toolgate_core::id::{RunId, Tenant};
use toolgate_core::run::JournalEntry;
use toolgate_driver::DriveError;
use toolgate_ports::{Commit, RunStore};

use super::poller::Poller;
use crate::{AgentRunner, Inner, RunnerError};

/// Access to the commits of one tenant, and a notification about new ones. Like a [`RunSubscription`](super::RunSubscription),
/// it holds no part of the runner.
pub struct CommitSubscription {
    tenant: Tenant,
    runs: Arc<dyn RunStore>,
    /// The latest commit that this process knows.
    latest: watch::Receiver<u64>,
    /// Keeps the poller alive.
    _poller: Arc<Poller>,
}

impl AgentRunner {
    /// A subscription to the commits of a tenant. Those of this process are reported at once; for those of other processes, one
    /// query about every `interval` looks for commits of all tenants with a subscription.
    pub fn commits(&self, tenant: &Tenant, interval: Duration) -> CommitSubscription {
        let Inner { ports, broadcaster, poller, active_runs, .. } = &*self.inner;
        let runs = ports.store.runs.clone();
        let latest = broadcaster.commits_of(tenant);
        poller.start(&runs, active_runs, interval);
        CommitSubscription { tenant: tenant.clone(), runs, latest, _poller: poller.clone() }
    }
}

impl CommitSubscription {
    /// The position of the latest commit; 0 without one.
    pub async fn latest(&self) -> Result<u64, RunnerError> {
        let latest = self.runs.latest_commits(std::slice::from_ref(&self.tenant)).await.map_err(DriveError::from)?;
        Ok(latest.first().copied().unwrap_or_default())
    }

    /// The commits after a position, in order, up to a maximum number.
    pub async fn after(&self, position: u64, limit: usize) -> Result<Vec<Commit>, RunnerError> {
        Ok(self.runs.commits(&self.tenant, position, limit).await.map_err(DriveError::from)?)
    }

    /// The events of a run from a journal position on.
    pub async fn facts(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, RunnerError> {
        Ok(self.runs.load(run, from).await.map_err(DriveError::from)?)
    }

    /// Waits until there is a commit after this position. Cancel-safe.
    pub async fn newer_than(&mut self, position: u64) {
        if self.latest.wait_for(|latest| *latest > position).await.is_err() {
            pending().await
        }
    }
}
