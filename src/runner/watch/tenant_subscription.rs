//! Subscription to the events of a tenant: what a surface needs to follow all of its runs, whichever process writes them.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use toolgate_core::id::{RunId, Tenant};
use toolgate_core::run::JournalEntry;
use toolgate_driver::DriveError;
use toolgate_ports::{LogPage, RunStore};

use super::Broadcaster;
use super::poller::Poller;
use crate::registry::ActiveRuns;
use crate::{AgentRunner, Inner, RunnerError};

/// Access to the events of one tenant, and a notification about new ones. Like a [`RunSubscription`](super::RunSubscription),
/// it holds no part of the runner.
pub struct TenantSubscription {
    tenant: Tenant,
    runs: Arc<dyn RunStore>,
    broadcaster: Arc<Broadcaster>,
    poller: Arc<Poller>,
    active_runs: Arc<ActiveRuns>,
    interval: Duration,
    /// The position of the latest event that this process knows; `None` before the first wait.
    latest: Option<watch::Receiver<u64>>,
}

impl AgentRunner {
    /// A subscription to the events of a tenant. Those of this process are reported at once; for those of other
    /// processes, one query about every `interval` looks for events of all tenants. Both begin with the first wait, so
    /// that a page of events needs neither.
    pub fn tenant_subscription(&self, tenant: &Tenant, interval: Duration) -> TenantSubscription {
        let Inner { ports, broadcaster, poller, active_runs, .. } = &*self.inner;
        TenantSubscription {
            tenant: tenant.clone(),
            runs: ports.store.runs.clone(),
            broadcaster: broadcaster.clone(),
            poller: poller.clone(),
            active_runs: active_runs.clone(),
            interval,
            latest: None,
        }
    }
}

impl TenantSubscription {
    /// The position of the last event of all tenants; 0 without one.
    pub async fn last_position(&self) -> Result<u64, RunnerError> {
        Ok(self.runs.last_position().await.map_err(DriveError::from)?)
    }

    /// The events after a position, up to a maximum number.
    pub async fn after(&self, position: u64, limit: usize) -> Result<LogPage, RunnerError> {
        Ok(self.runs.logged(&self.tenant, position, limit).await.map_err(DriveError::from)?)
    }

    /// The journal of a run from a position on.
    pub async fn journal(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, RunnerError> {
        Ok(self.runs.load(run, from).await.map_err(DriveError::from)?)
    }

    /// Waits until there may be an event after this position. The first call returns at once, because events before it
    /// were not followed. Cancel-safe.
    pub async fn newer_than(&mut self, position: u64) {
        let Some(latest) = &mut self.latest else {
            self.latest = Some(self.broadcaster.events_of(&self.tenant));
            self.poller.start(&self.runs, &self.active_runs, self.interval);
            return;
        };
        if latest.wait_for(|latest| *latest > position).await.is_err() {
            pending().await
        }
    }
}
