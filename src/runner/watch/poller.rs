//! Poller of watched runs. Other processes write to the same store, and it does not tell; so one task looks at the positions of
//! all watched runs at once, and wakes the watchers of those that moved.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use super::Hub;
use crate::core::id::RunId;
use crate::ports::{RunPosition, RunStore};
use crate::runner::driving::Driving;

/// The task, while runs are watched. It ends with the last watch, and at once when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Poller(Mutex<Task>);

#[derive(Debug, Default)]
struct Task {
    is_polling: bool,
    tasks: JoinSet<()>,
}

/// Starts the task unless it runs.
pub(super) fn start(hub: &Arc<Hub>, runs: &Arc<dyn RunStore>, driving: &Arc<Driving>, interval: Duration) {
    let mut task = hub.poller.task();
    if std::mem::replace(&mut task.is_polling, true) {
        return;
    }
    while task.tasks.try_join_next().is_some() {}
    task.tasks.spawn(poll(Arc::downgrade(hub), runs.clone(), driving.clone(), interval));
}

async fn poll(hub: Weak<Hub>, runs: Arc<dyn RunStore>, driving: Arc<Driving>, interval: Duration) {
    let mut known: BTreeMap<RunId, RunPosition> = BTreeMap::new();
    let mut is_failing = false;
    loop {
        tokio::time::sleep(interval).await;
        let Some(watched) = hub.upgrade().and_then(|hub| hub.watched_or_end()) else { return };
        // What is driven here is seen here.
        let elsewhere: Vec<RunId> = watched.into_iter().filter(|run| driving.driven(run).is_none()).collect();
        if elsewhere.is_empty() {
            known.clear();
            continue;
        }
        match runs.positions(&elsewhere).await {
            Ok(positions) => {
                is_failing = false;
                let Some(hub) = hub.upgrade() else { return };
                // A run that was not looked at before may have moved since its watcher read it.
                for position in positions.iter().filter(|position| known.get(&position.run) != Some(position)) {
                    hub.set_behind(&position.run);
                }
                known = positions.into_iter().map(|position| (position.run.clone(), position)).collect();
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "failed to poll watched runs");
                }
            }
        }
    }
}

impl Hub {
    /// The runs that are watched; `None` if there are none, and the task has to end.
    fn watched_or_end(&self) -> Option<Vec<RunId>> {
        // A watch that is registered after this look starts the task again.
        let mut task = self.poller.task();
        let watched: Vec<RunId> = self.watched().keys().cloned().collect();
        task.is_polling = !watched.is_empty();
        task.is_polling.then_some(watched)
    }
}

impl Poller {
    fn task(&self) -> MutexGuard<'_, Task> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
