//! A store that fails at configured appends, as real stores do. It rejects an event that refers to a blob before the
//! blob is stored.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::Notify;
use toolgate::core::blob::{Blob, BlobHandle};
use toolgate::core::id::{NodeId, RunId, SessionId, Tenant};
use toolgate::core::run::{Event, JournalEntry, Segment};
use toolgate::ports::{
    Append, AppendError, BlobError, BlobInfo, BlobStore, Claim, Purged, RunFilter, RunRow, RunStore, SessionFilter,
    SessionRow, SessionSaved, SessionStore, StoreError,
};

use super::intruder;

/// A fault of an append.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Nothing is written, and an error is returned.
    Refused,
    /// Everything is written, and an error is returned.
    AcknowledgementLost,
    /// Another writer appends this event first.
    Intrusion(Box<Event>),
    /// Another writer appends this impossible event first.
    Nonsense(Box<Event>),
    /// The append takes this long.
    Slow(Duration),
    /// Everything is written, and the acknowledgement waits for this.
    AcknowledgementHeld(Arc<Notify>),
    /// The process is killed before anything is written.
    KilledBefore,
    /// The process is killed after everything is written.
    KilledAfter,
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
    held: usize,
    renews_no_more: bool,
    refuses_blobs: usize,
    refuses_reads: usize,
    panics_in_reads: bool,
    reads: usize,
    most_reads: usize,
    shared: Vec<(RunId, Vec<BlobHandle>)>,
    segments: Vec<RunId>,
}

impl FailingStore {
    pub(crate) fn around(inner: Arc<dyn RunStore>) -> Self {
        Self { inner, plan: Mutex::default() }
    }

    /// Makes the `nth` append since the start of the test fail.
    pub(crate) fn fail_at(&self, nth: usize, fault: Fault) {
        self.plan.lock().unwrap().faults.insert(nth, fault);
    }

    /// Makes the next append fail.
    pub(crate) fn fail_next(&self, fault: Fault) {
        let mut plan = self.plan.lock().unwrap();
        let next = plan.appends;
        plan.faults.insert(next, fault);
    }

    /// Lets leases expire from now on, as if the process had stopped.
    pub(crate) fn stop_renewing(&self) {
        self.plan.lock().unwrap().renews_no_more = true;
    }

    /// Rejects the next `count` blobs.
    pub(crate) fn refuse_blobs(&self, count: usize) {
        self.plan.lock().unwrap().refuses_blobs = count;
    }

    /// Rejects the next `count` reads of blobs, sessions and conversations.
    pub(crate) fn refuse_reads(&self, count: usize) {
        self.plan.lock().unwrap().refuses_reads = count;
    }

    /// Makes every later read of a blob panic.
    pub(crate) fn panic_in_reads(&self) {
        self.plan.lock().unwrap().panics_in_reads = true;
    }

    /// The maximum of concurrent blob reads.
    pub(crate) fn most_reads_at_once(&self) -> usize {
        self.plan.lock().unwrap().most_reads
    }

    /// The segments that were read one by one, and forgets them.
    pub(crate) fn take_read_segments(&self) -> Vec<RunId> {
        std::mem::take(&mut self.plan.lock().unwrap().segments)
    }

    fn refuses_a_read(&self) -> Result<(), StoreError> {
        let mut plan = self.plan.lock().unwrap();
        let refuses = plan.refuses_reads > 0;
        plan.refuses_reads -= usize::from(refuses);
        if refuses { Err(StoreError::Unavailable("the store fails on demand".into())) } else { Ok(()) }
    }

    /// The runs that started to use existing blobs.
    pub(crate) fn shared(&self) -> Vec<(RunId, Vec<BlobHandle>)> {
        self.plan.lock().unwrap().shared.clone()
    }

    fn refuses_a_blob(&self) -> bool {
        let mut plan = self.plan.lock().unwrap();
        let refuses = plan.refuses_blobs > 0;
        plan.refuses_blobs -= usize::from(refuses);
        refuses
    }

    fn kept_blobs(&self) -> Arc<dyn BlobStore> {
        self.inner.clone().blobs().expect("the stores of these tests keep blobs")
    }

    async fn assert_blobs_are_there(&self, append: &Append) {
        let events = serde_json::to_string(&append.events).unwrap();
        for (start, _) in events.match_indices("media://sha256-") {
            let handle = BlobHandle::parse(&events[start..start + 79]).unwrap();
            assert!(
                self.kept_blobs().describe(&handle).await.unwrap().is_some(),
                "{handle} is named before it is kept"
            );
        }
    }

    /// The number of attempted appends.
    pub(crate) fn appends(&self) -> usize {
        self.plan.lock().unwrap().appends
    }

    /// The number of written appends with a held acknowledgement.
    pub(crate) fn held(&self) -> usize {
        self.plan.lock().unwrap().held
    }

    /// Whether every configured fault has happened.
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

/// Ends the process as `kill -9` does. Never returns.
async fn kill_this_process() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    std::future::pending().await
}

fn down() -> AppendError {
    AppendError::Store(StoreError::Unavailable("the store fails on demand".into()))
}

#[async_trait]
impl RunStore for FailingStore {
    async fn append(&self, append: Append) -> Result<(), AppendError> {
        self.assert_blobs_are_there(&append).await;
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
            Some(Fault::AcknowledgementHeld(release)) => {
                self.inner.append(append).await?;
                self.plan.lock().unwrap().held += 1;
                release.notified().await;
                return Ok(());
            }
            Some(Fault::KilledBefore) => kill_this_process().await,
            Some(Fault::KilledAfter) => {
                self.inner.append(append).await?;
                kill_this_process().await;
                return Ok(());
            }
        }
        self.inner.append(append).await
    }

    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, StoreError> {
        self.inner.load(run, from).await
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        self.inner.list(filter).await
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError> {
        self.inner.claim(claim).await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.inner.orphaned(limit).await
    }

    async fn purge(&self, run: &RunId, at: u64, now: Timestamp) -> Result<Purged, StoreError> {
        self.inner.purge(run, at, now).await
    }

    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError> {
        let stopped = self.plan.lock().unwrap().renews_no_more;
        if stopped { Ok(()) } else { self.inner.renew(owner, runs, lease).await }
    }

    fn blobs(self: Arc<Self>) -> Option<Arc<dyn BlobStore>> {
        Some(self)
    }
}

super::delegate_event_log!(FailingStore, inner);

#[async_trait]
impl SessionStore for FailingStore {
    async fn session(&self, tenant: &Tenant, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        self.refuses_a_read()?;
        self.inner.session(tenant, id).await
    }

    async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        self.refuses_a_read()?;
        self.inner.sessions(filter).await
    }

    async fn save_session(&self, expected: u64, row: &SessionRow) -> Result<SessionSaved, StoreError> {
        self.inner.save_session(expected, row).await
    }

    async fn segment_lengths(&self, tenant: &Tenant, run: &RunId) -> Result<Vec<(RunId, Option<u64>)>, StoreError> {
        self.refuses_a_read()?;
        self.inner.segment_lengths(tenant, run).await
    }

    async fn segments(&self, tenant: &Tenant, runs: &[RunId]) -> Result<Vec<(RunId, Segment)>, StoreError> {
        self.plan.lock().unwrap().segments.extend(runs.iter().cloned());
        self.inner.segments(tenant, runs).await
    }
}

#[async_trait]
impl BlobStore for FailingStore {
    async fn put(&self, run: &RunId, blob: Blob) -> Result<BlobHandle, BlobError> {
        if self.refuses_a_blob() {
            return Err(BlobError::Store(StoreError::Unavailable("the store fails on demand".into())));
        }
        self.kept_blobs().put(run, blob).await
    }

    async fn share(&self, run: &RunId, handles: &[BlobHandle]) -> Result<(), StoreError> {
        self.plan.lock().unwrap().shared.push((run.clone(), handles.to_vec()));
        self.kept_blobs().share(run, handles).await
    }

    async fn forget(&self, run: &RunId) -> Result<(), StoreError> {
        self.kept_blobs().forget(run).await
    }

    async fn get(&self, handle: &BlobHandle) -> Result<Option<Blob>, StoreError> {
        self.refuses_a_read()?;
        let panics = {
            let mut plan = self.plan.lock().unwrap();
            plan.reads += 1;
            plan.most_reads = plan.most_reads.max(plan.reads);
            plan.panics_in_reads
        };
        assert!(!panics, "the store panics on demand");
        // Long enough for a concurrent read.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let blob = self.kept_blobs().get(handle).await;
        self.plan.lock().unwrap().reads -= 1;
        blob
    }

    async fn describe(&self, handle: &BlobHandle) -> Result<Option<BlobInfo>, StoreError> {
        self.refuses_a_read()?;
        self.kept_blobs().describe(handle).await
    }
}
