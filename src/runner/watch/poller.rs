//! Poller of watched runs and tenants. Other processes write to the same store, which sends no notifications. One task
//! therefore queries the positions of all watched runs at once, and wakes the watchers of those that changed; in the same way
//! it queries which tenants have new events, also when this process wrote to a journal. Its interval has jitter,
//! so that processes that started together do not poll in lockstep.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use toolgate_core::id::{NodeId, RunId};
use toolgate_ports::{RunPosition, RunStore, StoreError};

use super::Broadcaster;
use crate::registry::ActiveRuns;

/// The poller of a process. Its task ends with the last watch, and at once when the poller is dropped.
#[derive(Debug)]
pub(crate) struct Poller {
    broadcaster: Arc<Broadcaster>,
    node: NodeId,
    task: Mutex<Task>,
}

/// The pauses between the polls of one process.
struct PollPace {
    node: NodeId,
    interval: Duration,
    polls: u64,
}

/// What one poll looks for.
struct Watched {
    runs: Vec<RunId>,
    has_tenants: bool,
}

#[derive(Debug, Default)]
struct Task {
    is_polling: bool,
    tasks: JoinSet<()>,
}

impl Poller {
    /// A poller for the watchers of the node with this name in the store.
    pub(crate) fn new(broadcaster: Arc<Broadcaster>, node: NodeId) -> Self {
        Self { broadcaster, node, task: Mutex::default() }
    }

    /// Starts the task unless it is running.
    pub(super) fn start(self: &Arc<Self>, runs: &Arc<dyn RunStore>, active_runs: &Arc<ActiveRuns>, interval: Duration) {
        let mut task = self.task();
        if std::mem::replace(&mut task.is_polling, true) {
            return;
        }
        while task.tasks.try_join_next().is_some() {}
        let pace = PollPace { node: self.node.clone(), interval, polls: 0 };
        task.tasks.spawn(poll(Arc::downgrade(self), runs.clone(), active_runs.clone(), pace));
    }

    /// The watched runs and tenants; `None` if there are none, in which case the task must end.
    fn watched_or_end(&self) -> Option<Watched> {
        // A watch that is registered after this check starts the task again.
        let mut task = self.task();
        let watched = Watched { runs: self.broadcaster.runs(), has_tenants: !self.broadcaster.tenants().is_empty() };
        task.is_polling = !watched.runs.is_empty() || watched.has_tenants;
        task.is_polling.then_some(watched)
    }

    fn task(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn poll(poller: Weak<Poller>, runs: Arc<dyn RunStore>, active_runs: Arc<ActiveRuns>, mut pace: PollPace) {
    let mut known: BTreeMap<RunId, RunPosition> = BTreeMap::new();
    let (mut is_failing, mut log_is_failing) = (false, false);
    // The position up to which the watchers of tenants were notified.
    let mut reported = None;
    let Some(committed) = poller.upgrade().map(|poller| poller.broadcaster.committed.clone()) else { return };
    let mut pause = pin!(sleep(pace.pause()));
    loop {
        let is_due = tokio::select! {
            () = &mut pause => true,
            () = committed.notified() => false,
        };
        let Some(watched) = poller.upgrade().and_then(|poller| poller.watched_or_end()) else { return };
        match newest_events(&poller, &*runs, watched.has_tenants, reported).await {
            Ok(position) => {
                log_is_failing = false;
                reported = position;
            }
            Err(error) => note_failure(&mut log_is_failing, &error),
        }
        if !is_due {
            continue;
        }
        pause.set(sleep(pace.pause()));
        // This process sees the updates of its own active runs without polling.
        let elsewhere: Vec<RunId> = watched.runs.into_iter().filter(|run| active_runs.driven(run).is_none()).collect();
        if elsewhere.is_empty() {
            known.clear();
            continue;
        }
        match runs.positions(&elsewhere).await {
            Ok(positions) => {
                is_failing = false;
                let Some(poller) = poller.upgrade() else { return };
                // A run that was not polled before may have changed since its watcher read it.
                for position in positions.iter().filter(|position| known.get(&position.run) != Some(position)) {
                    poller.broadcaster.set_behind(&position.run);
                }
                known = positions.into_iter().map(|position| (position.run.clone(), position)).collect();
            }
            Err(error) => note_failure(&mut is_failing, &error),
        }
    }
}

/// Notifies the watchers of tenants of events after the position up to which they were notified, and
/// returns the new one; `None` if no tenant is watched.
async fn newest_events(
    poller: &Weak<Poller>,
    runs: &dyn RunStore,
    is_watched: bool,
    reported: Option<u64>,
) -> Result<Option<u64>, StoreError> {
    if !is_watched {
        return Ok(None);
    }
    let Some(position) = reported else {
        // Which tenants had events before is not known: each watcher reads the log again.
        let last = runs.last_position().await?;
        if let Some(poller) = poller.upgrade() {
            poller.broadcaster.tenants().iter().for_each(|tenant| poller.broadcaster.set_latest(tenant, last));
        }
        return Ok(Some(last));
    };
    let latest = runs.tenants_after(position).await?;
    if let Some(poller) = poller.upgrade() {
        latest.iter().for_each(|(tenant, latest)| poller.broadcaster.set_latest(tenant, *latest));
    }
    Ok(latest.iter().map(|(_, latest)| *latest).max().max(reported))
}

/// Logs the first of several failures in a row.
fn note_failure(is_failing: &mut bool, error: &StoreError) {
    if !std::mem::replace(is_failing, true) {
        tracing::warn!(%error, "failed to poll watched runs");
    }
}

impl PollPace {
    /// The next pause: the interval, plus or minus a fifth. It depends on the node and the number of the poll and not
    /// on random numbers, so that it is reproducible.
    fn pause(&mut self) -> Duration {
        self.polls += 1;
        let mut hasher = DefaultHasher::new();
        (self.node.as_str(), self.polls).hash(&mut hasher);
        let per_mille = u32::try_from(hasher.finish() % 401).unwrap_or_default() + 800;
        self.interval.saturating_mul(per_mille) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(node: &str) -> Vec<Duration> {
        let mut pace = PollPace { node: node.into(), interval: Duration::from_secs(1), polls: 0 };
        (0..100).map(|_| pace.pause()).collect()
    }

    #[test]
    fn processes_on_one_store_do_not_poll_together() {
        let (a, b) = (pauses("node_a"), pauses("node_b"));
        assert_eq!(a, pauses("node_a"), "a node has the same pace each time");
        let together = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert!(together < 10, "{together} of 100 pauses are the same");
        for pauses in [a, b] {
            assert!(pauses.iter().all(|pause| (800..=1200).contains(&pause.as_millis())), "{pauses:?}");
            let mean = pauses.iter().sum::<Duration>() / 100;
            assert!((950..=1050).contains(&mean.as_millis()), "{mean:?}");
        }
    }
}
