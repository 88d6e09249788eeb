//! Watching runs of this process: every fact in order, and the fragments in between.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio::sync::broadcast;

use super::{AgentRunner, RunnerError};
use crate::core::id::RunId;
use crate::core::run::Recorded;
use crate::driver::DriveError;
use crate::ports::{EventSink, Update};

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

/// What a watcher needs besides: what it missed, and whether there is anything to be seen here at all.
impl AgentRunner {
    /// The facts of a run from a position on; none when there are none yet.
    pub async fn journal_from(&self, run: &RunId, from: u64) -> Result<Vec<Recorded>, RunnerError> {
        Ok(self.inner.ports.store.runs.load(run, from).await.map_err(DriveError::from)?)
    }

    /// Whether this process drives the run at this moment. A run that is driven elsewhere shows only in its journal.
    pub fn drives(&self, run: &RunId) -> bool {
        self.inner.driving.driven(run).is_some()
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
