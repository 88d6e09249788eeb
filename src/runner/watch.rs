//! Watching runs: every event in order, with the deltas in between, for runs that this process executes; and a
//! notification about new events for runs that other processes write to. Watchers of a tenant get notifications about its
//! events.

mod poller;
mod reply_so_far;
mod subscription;
mod tenant_subscription;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::{Notify, watch};
use toolgate_core::id::{RunId, Tenant};
use toolgate_core::lifecycle::{Delta, FragmentPosition};
use toolgate_core::run::{JournalEntry, PartialReply};
use toolgate_ports::{EventSink, Update};

pub(super) use self::poller::Poller;
pub use self::reply_so_far::ReplySoFar;
pub use self::subscription::RunSubscription;
pub use self::tenant_subscription::TenantSubscription;

/// How far a watcher may fall behind before it misses updates. A watcher that keeps up allocates none of it.
const CAPACITY: usize = 1024;

/// Distributes updates to watchers.
#[derive(Debug, Default)]
pub(super) struct Broadcaster {
    live: Mutex<LiveRuns>,
    /// Wakes the poller: this process wrote to a journal, and a tenant is watched.
    committed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct LiveRuns {
    watched: BTreeMap<RunId, Vec<Arc<Subscription>>>,
    /// The positions of the latest known events of watched tenants.
    tenants: BTreeMap<Tenant, watch::Sender<u64>>,
    /// The replies that models are streaming to this process, for watchers that join late.
    replies: BTreeMap<RunId, ReplySoFar>,
}

/// A live view of one run.
#[derive(Debug)]
pub struct Watch {
    run: RunId,
    subscription: Arc<Subscription>,
    /// The broadcaster that it unregisters from on drop.
    broadcaster: Option<Arc<Broadcaster>>,
}

/// The updates that a watcher has not read yet.
#[derive(Debug, Default)]
struct Subscription {
    unread: Mutex<UpdateQueue>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct UpdateQueue {
    updates: VecDeque<Arc<Update>>,
    /// Another process wrote to the run.
    is_behind: bool,
    is_over: bool,
}

/// A notification to a watcher.
#[derive(Debug)]
pub enum WatchEvent {
    /// An update from this process.
    Update(Box<Update>),
    /// The journal may contain events of other processes.
    Behind,
    /// This process no longer executes the run.
    Over,
}

impl Watch {
    /// The next update; `None` when the run is idle. A watcher that fell far behind continues with the remaining
    /// updates: the missed events are in the journal.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            match self.news().await {
                WatchEvent::Update(update) => return Some(*update),
                WatchEvent::Behind => {}
                WatchEvent::Over => return None,
            }
        }
    }

    /// The next update if it is available; `Ready(None)` when the run is idle.
    pub fn try_next(&mut self) -> Poll<Option<Update>> {
        let mut unread = self.subscription.unread();
        match unread.updates.pop_front() {
            Some(update) => Poll::Ready(Some(Arc::unwrap_or_clone(update))),
            None if unread.is_over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// The next notification, including those about other processes if the run is [followed](RunSubscription::follow).
    /// Cancel-safe.
    pub async fn news(&mut self) -> WatchEvent {
        loop {
            match self.try_next() {
                Poll::Ready(Some(update)) => return WatchEvent::Update(update.into()),
                Poll::Ready(None) => return WatchEvent::Over,
                Poll::Pending => {}
            }
            if std::mem::take(&mut self.subscription.unread().is_behind) {
                return WatchEvent::Behind;
            }
            // A change since the check above has stored a permit.
            self.subscription.changed.notified().await;
        }
    }

    /// What a model streamed so far of its current reply to this process; `None` when it is not streaming. The fragments
    /// that the watch returned or has not returned yet are part of it: compare the positions.
    pub fn reply_so_far(&self) -> Option<ReplySoFar> {
        self.broadcaster.as_ref()?.live().replies.get(&self.run).cloned()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(broadcaster) = &self.broadcaster else { return };
        let mut live = broadcaster.live();
        if let Some(subscriptions) = live.watched.get_mut(&self.run) {
            subscriptions.retain(|other| !Arc::ptr_eq(other, &self.subscription));
            if subscriptions.is_empty() {
                live.watched.remove(&self.run);
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

    fn set(&self, change: impl FnOnce(&mut UpdateQueue)) {
        change(&mut self.unread());
        self.changed.notify_one();
    }

    fn unread(&self) -> MutexGuard<'_, UpdateQueue> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Broadcaster {
    pub(super) fn watch(self: &Arc<Self>, run: &RunId) -> Watch {
        let subscription = Arc::<Subscription>::default();
        self.live().watched.entry(run.clone()).or_default().push(subscription.clone());
        Watch { run: run.clone(), subscription, broadcaster: Some(self.clone()) }
    }

    /// The text that a model has streamed of its current reply to this run.
    pub(super) fn partial_reply(&self, run: &RunId) -> Option<PartialReply> {
        self.live().replies.get(run).map(|reply| PartialReply { call: reply.call, text: reply.text.clone() })
    }

    /// A watch that is already over.
    pub(super) fn closed() -> Watch {
        let subscription = Arc::<Subscription>::default();
        subscription.unread().is_over = true;
        Watch { run: "".into(), subscription, broadcaster: None }
    }

    /// The watched runs.
    fn runs(&self) -> Vec<RunId> {
        self.live().watched.keys().cloned().collect()
    }

    /// The position of the latest known event of a tenant, which the poller updates.
    fn events_of(&self, tenant: &Tenant) -> watch::Receiver<u64> {
        self.live().tenants.entry(tenant.clone()).or_default().subscribe()
    }

    /// The watched tenants. Forgets those that are no longer watched.
    fn tenants(&self) -> Vec<Tenant> {
        let mut live = self.live();
        live.tenants.retain(|_, latest| latest.receiver_count() > 0);
        live.tenants.keys().cloned().collect()
    }

    /// Notifies the watchers of a tenant of its latest event.
    fn set_latest(&self, tenant: &Tenant, latest: u64) {
        if let Some(known) = self.live().tenants.get(tenant) {
            known.send_if_modified(|known| std::mem::replace(known, latest.max(*known)) < latest);
        }
    }

    /// Notifies the watchers of a run that there are more events.
    fn set_behind(&self, run: &RunId) {
        for subscription in self.live().watched.get(run).into_iter().flatten() {
            subscription.set(|unread| unread.is_behind = true);
        }
    }

    /// Wakes the poller if a tenant is watched.
    fn note_commit(&self, live: &LiveRuns) {
        if !live.tenants.is_empty() {
            self.committed.notify_one();
        }
    }

    fn live(&self) -> MutexGuard<'_, LiveRuns> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveRuns {
    fn add_to_reply(&mut self, run: &RunId, delta: &Delta, position: FragmentPosition) {
        match self.replies.get_mut(run) {
            Some(reply) if reply.call == position.call => reply.push(delta),
            Some(_) | None => {
                let mut reply = ReplySoFar::new(position.call);
                reply.push(delta);
                self.replies.insert(run.clone(), reply);
            }
        }
    }
}

impl EventSink for Broadcaster {
    fn observe(&self, run: &RunId, update: &Update) {
        let mut live = self.live();
        match update {
            Update::Delta { delta, position: Some(position) } => live.add_to_reply(run, delta, *position),
            Update::Delta { position: None, .. } => {}
            // The driver writes nothing while a model streams: the reply is complete, or was abandoned.
            Update::JournalEntry(_) => {
                live.replies.remove(run);
                self.note_commit(&live);
            }
        }
        let Some(subscriptions) = live.watched.get(run) else { return };
        let update = Arc::new(update.clone());
        subscriptions.iter().for_each(|subscription| subscription.push(&update));
    }

    fn wrote_idle(&self, _run: &RunId, _history: &[JournalEntry], _facts: &[JournalEntry]) {
        self.note_commit(&self.live());
    }

    fn released(&self, run: &RunId, _at: jiff::Timestamp) {
        let mut live = self.live();
        live.replies.remove(run);
        for subscription in live.watched.remove(run).unwrap_or_default() {
            subscription.set(|unread| unread.is_over = true);
        }
    }
}
