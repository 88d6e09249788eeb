//! Watching runs: every fact in order, and the fragments in between, of runs that this process drives; and a notice that there is
//! more to read of runs that other processes write to.

mod poller;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

use self::poller::Poller;
use super::driving::Driving;
use super::{AgentRunner, Inner, RunnerError};
use crate::core::id::{NodeId, RunId};
use crate::core::run::Recorded;
use crate::driver::DriveError;
use crate::ports::{EventSink, RunFilter, RunRow, RunStore, Update};

/// How far a watcher may fall behind before it misses something. A watcher that keeps up has none of it allocated.
const CAPACITY: usize = 1024;

/// Hands updates to those who watch.
#[derive(Debug)]
pub(super) struct Hub {
    watched: Mutex<BTreeMap<RunId, Vec<Arc<Subscription>>>>,
    poller: Poller,
}

/// A running view of one run.
#[derive(Debug)]
pub struct Watch {
    run: RunId,
    subscription: Arc<Subscription>,
    /// Where it is to be removed when it is dropped.
    hub: Option<Arc<Hub>>,
}

/// What a watcher has not taken yet.
#[derive(Debug, Default)]
struct Subscription {
    unread: Mutex<Unread>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Unread {
    updates: VecDeque<Arc<Update>>,
    /// Another process wrote to the run.
    is_behind: bool,
    is_over: bool,
}

/// What a watcher learns.
#[derive(Debug)]
pub enum News {
    /// Something happened in this process.
    Update(Box<Update>),
    /// The journal may have facts that this process has not written.
    Behind,
    /// This process drives the run no longer.
    Over,
}

impl Watch {
    /// The next update; `None` when the run rests. A watcher that fell far behind goes on with what is left: facts it
    /// missed are in the journal.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            match self.news().await {
                News::Update(update) => return Some(*update),
                News::Behind => {}
                News::Over => return None,
            }
        }
    }

    /// The next update if it is there already; `Ready(None)` when the run rests.
    pub fn try_next(&mut self) -> Poll<Option<Update>> {
        let mut unread = self.subscription.unread();
        match unread.updates.pop_front() {
            Some(update) => Poll::Ready(Some(Arc::unwrap_or_clone(update))),
            None if unread.is_over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// What there is to learn next, of other processes too if the run is [followed](Lookout::follow). May be dropped and
    /// asked for again.
    pub async fn news(&mut self) -> News {
        loop {
            match self.try_next() {
                Poll::Ready(Some(update)) => return News::Update(update.into()),
                Poll::Ready(None) => return News::Over,
                Poll::Pending => {}
            }
            if std::mem::take(&mut self.subscription.unread().is_behind) {
                return News::Behind;
            }
            // A change since the look above has left its permit.
            self.subscription.changed.notified().await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(hub) = &self.hub else { return };
        let mut watched = hub.watched();
        if let Some(subscriptions) = watched.get_mut(&self.run) {
            subscriptions.retain(|other| !Arc::ptr_eq(other, &self.subscription));
            if subscriptions.is_empty() {
                watched.remove(&self.run);
            }
        }
    }
}

impl Subscription {
    fn push(&self, update: &Arc<Update>) {
        let mut unread = self.unread();
        if unread.updates.len() >= CAPACITY {
            unread.updates.pop_front();
        }
        unread.updates.push_back(update.clone());
        drop(unread);
        self.changed.notify_one();
    }

    fn set(&self, change: impl FnOnce(&mut Unread)) {
        change(&mut self.unread());
        self.changed.notify_one();
    }

    fn unread(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Has watches of this run learn of what other processes write: one look at the store about every `interval` for all runs
    /// that are watched. To be called after [`watch`](Self::watch), within an async runtime.
    pub fn follow(&self, interval: Duration) {
        poller::start(&self.hub, &self.runs, &self.driving, interval);
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
}

impl Hub {
    /// Of the process that is called `node` in the store.
    pub(super) fn new(node: NodeId) -> Self {
        Self { watched: Mutex::default(), poller: Poller::new(node) }
    }

    pub(super) fn watch(self: &Arc<Self>, run: &RunId) -> Watch {
        let subscription = Arc::<Subscription>::default();
        self.watched().entry(run.clone()).or_default().push(subscription.clone());
        Watch { run: run.clone(), subscription, hub: Some(self.clone()) }
    }

    /// A watch of something that is over.
    pub(super) fn closed() -> Watch {
        let subscription = Arc::<Subscription>::default();
        subscription.unread().is_over = true;
        Watch { run: "".into(), subscription, hub: None }
    }

    /// Tells the watchers of a run that there is more to read.
    fn set_behind(&self, run: &RunId) {
        for subscription in self.watched().get(run).into_iter().flatten() {
            subscription.set(|unread| unread.is_behind = true);
        }
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<RunId, Vec<Arc<Subscription>>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Hub {
    fn observe(&self, run: &RunId, update: &Update) {
        let watched = self.watched();
        let Some(subscriptions) = watched.get(run) else { return };
        let update = Arc::new(update.clone());
        subscriptions.iter().for_each(|subscription| subscription.push(&update));
    }

    fn laid_down(&self, run: &RunId, _at: jiff::Timestamp) {
        for subscription in self.watched().remove(run).unwrap_or_default() {
            subscription.set(|unread| unread.is_over = true);
        }
    }
}
