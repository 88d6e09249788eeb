//! Watching runs of this process: every fact in order, and the fragments in between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio::sync::broadcast;

use super::driving::Driving;
use super::{AgentRunner, Inner, RunnerError};
use crate::core::id::RunId;
use crate::core::run::Recorded;
use crate::driver::DriveError;
use crate::ports::{EventSink, RunFilter, RunRow, RunStore, Update};

/// How far a watcher may fall behind before it misses something. Every execution makes room for so many, whether it is
/// watched or not, so the room is one of pointers.
const CAPACITY: usize = 1024;

/// Hands updates to whoever watches.
#[derive(Debug, Default)]
pub(super) struct Hub {
    watched: Mutex<BTreeMap<RunId, broadcast::Sender<Arc<Update>>>>,
}

/// A running view of one run.
#[derive(Debug)]
pub struct Watch {
    updates: broadcast::Receiver<Arc<Update>>,
}

impl Watch {
    /// The next update; `None` when the run rests. A watcher that fell far behind goes on with what is left: facts it
    /// missed are in the journal.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            match self.updates.recv().await {
                Ok(update) => return Some(Arc::unwrap_or_clone(update)),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// The next update if it is there already; `Ready(None)` when the run rests.
    pub fn try_next(&mut self) -> Poll<Option<Update>> {
        loop {
            match self.updates.try_recv() {
                Ok(update) => return Poll::Ready(Some(Arc::unwrap_or_clone(update))),
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(broadcast::error::TryRecvError::Empty) => return Poll::Pending,
                Err(broadcast::error::TryRecvError::Closed) => return Poll::Ready(None),
            }
        }
    }
}

/// Where one run is watched from: what happens, what was missed, and whether there is anything to be seen here at all. Nothing
/// that drives runs is held by it, so that a configuration that was replaced goes away however long somebody watches.
#[derive(Clone)]
pub struct Lookout {
    run: RunId,
    runs: Arc<dyn RunStore>,
    hub: Arc<Hub>,
    driving: Arc<Driving>,
}

impl AgentRunner {
    /// Where a run is watched from, whichever process drives it.
    pub fn lookout(&self, run: &RunId) -> Lookout {
        let Inner { ports, hub, driving, .. } = &*self.inner;
        Lookout { run: run.clone(), runs: ports.store.runs.clone(), hub: hub.clone(), driving: driving.clone() }
    }
}

impl Lookout {
    /// What happens from now on, in this process.
    pub fn watch(&self) -> Watch {
        self.hub.watch(&self.run)
    }

    /// The facts from a position on; none when there are none yet.
    pub async fn facts(&self, from: u64) -> Result<Vec<Recorded>, RunnerError> {
        Ok(self.runs.load(&self.run, from).await.map_err(DriveError::from)?)
    }

    /// The index row as it is now, also of a run that was deleted.
    pub async fn row(&self) -> Result<RunRow, RunnerError> {
        let filter = RunFilter { run: Some(self.run.clone()), purged: true, limit: 1, ..RunFilter::default() };
        let row = self.runs.list(&filter).await.map_err(DriveError::from)?.into_iter().next();
        row.ok_or_else(|| RunnerError::NoSuchRun(self.run.clone()))
    }

    /// Whether this process drives the run at this moment. A run that is driven elsewhere shows only in its journal.
    pub fn is_driven_here(&self) -> bool {
        self.driving.driven(&self.run).is_some()
    }
}

impl Hub {
    pub(super) fn watch(&self, run: &RunId) -> Watch {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        // Runs that are never driven here are never laid down here either.
        watched.retain(|_, sender| sender.receiver_count() > 0);
        let sender = watched.entry(run.clone()).or_insert_with(|| broadcast::channel(CAPACITY).0);
        Watch { updates: sender.subscribe() }
    }

    /// A watch of something that is over.
    pub(super) fn closed() -> Watch {
        Watch { updates: broadcast::channel(1).1 }
    }
}

impl EventSink for Hub {
    fn observe(&self, run: &RunId, update: &Update) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = watched.get(run) {
            // Nobody listening any more is no error.
            let _ = sender.send(Arc::new(update.clone()));
        }
    }

    fn laid_down(&self, run: &RunId, _at: jiff::Timestamp) {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }
}
