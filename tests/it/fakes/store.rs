//! A store that fails at the append it is told to fail at, in the ways real ones do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use toolgate::core::id::{NodeId, RunId};
use toolgate::core::run::{Event, Recorded};
use toolgate::ports::{Append, AppendError, Claim, RunFilter, RunRow, RunStore, StoreError};

use super::intruder;

/// What goes wrong with one append.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Nothing is written, and an error comes back.
    Refused,
    /// Everything is written, and an error comes back all the same.
    AcknowledgementLost,
    /// Somebody else writes this fact first.
    Intrusion(Box<Event>),
    /// Somebody writes this fact first although it cannot have happened.
    Nonsense(Box<Event>),
    /// It takes this long.
    Slow(Duration),
}

/// Counts the appends that pass through it, from 0.
pub(crate) struct FailingStore {
    inner: Arc<dyn RunStore>,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    appends: usize,
    faults: BTreeMap<usize, Fault>,
    renews_no_more: bool,
}

impl FailingStore {
    pub(crate) fn around(inner: Arc<dyn RunStore>) -> Self {
        Self { inner, plan: Mutex::default() }
    }

    /// The `nth` append from the beginning of the test goes wrong.
    pub(crate) fn fail_at(&self, nth: usize, fault: Fault) {
        self.plan.lock().unwrap().faults.insert(nth, fault);
    }

    /// The next append goes wrong.
    pub(crate) fn fail_next(&self, fault: Fault) {
        let mut plan = self.plan.lock().unwrap();
        let next = plan.appends;
        plan.faults.insert(next, fault);
    }

    /// From now on leases run out, as if the process had stopped.
    pub(crate) fn stop_renewing(&self) {
        self.plan.lock().unwrap().renews_no_more = true;
    }

    /// How many appends were tried.
    pub(crate) fn appends(&self) -> usize {
        self.plan.lock().unwrap().appends
    }

    /// Whether every planned fault has happened.
    pub(crate) fn is_spent(&self) -> bool {
        self.plan.lock().unwrap().faults.is_empty()
    }

    fn next_fault(&self) -> Option<Fault> {
        let mut plan = self.plan.lock().unwrap();
        let nth = plan.appends;
        plan.appends += 1;
        plan.faults.remove(&nth)
    }
}

fn down() -> AppendError {
    AppendError::Store(StoreError::Unavailable("the store fails on demand".into()))
}

#[async_trait]
impl RunStore for FailingStore {
    async fn append(&self, append: Append) -> Result<(), AppendError> {
        match self.next_fault() {
            None => {}
            Some(Fault::Refused) => return Err(down()),
            Some(Fault::AcknowledgementLost) => {
                self.inner.append(append).await?;
                return Err(down());
            }
            Some(Fault::Intrusion(event)) => intruder::write(&*self.inner, &append, *event).await,
            Some(Fault::Nonsense(event)) => intruder::write_nonsense(&*self.inner, &append, *event).await,
            Some(Fault::Slow(duration)) => tokio::time::sleep(duration).await,
        }
        self.inner.append(append).await
    }

    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        self.inner.load(run, from).await
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        self.inner.list(filter).await
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError> {
        self.inner.claim(claim).await
    }

    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError> {
        let stopped = self.plan.lock().unwrap().renews_no_more;
        if stopped { Ok(()) } else { self.inner.renew(owner, runs, lease).await }
    }
}
