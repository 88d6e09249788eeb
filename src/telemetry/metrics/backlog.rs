//! What waits in the store. It is the state of the store and not of a run that this process knows, so it is read from the
//! store's index, in the background: whoever reads metrics never waits for a store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use opentelemetry::metrics::Meter;

use super::instruments::observe;
use super::names::Metric;
use crate::core::run::Status;
use crate::ports::{RunFilter, RunStore, StoreError};

/// How many rows of the index are read at a time.
const PAGE: usize = 500;

/// What waited when the store was last asked.
#[derive(Debug, Default)]
pub struct Backlog(Mutex<Option<Waiting>>);

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    runs: u64,
    approvals: u64,
    oldest: Option<Timestamp>,
}

impl Backlog {
    /// Asks the store. While it does not answer, what it said last holds.
    pub async fn refresh(&self, store: &dyn RunStore) -> Result<(), StoreError> {
        let mut filter = RunFilter { status: Some(Status::Pending), limit: PAGE, ..RunFilter::default() };
        let mut waiting = Waiting::default();
        loop {
            let rows = store.list(&filter).await?;
            for row in &rows {
                waiting.runs += 1;
                waiting.approvals += u64::from(row.owes.approvals);
                waiting.oldest = [waiting.oldest, row.owes.asked_at].into_iter().flatten().min();
            }
            match rows.last() {
                Some(last) if rows.len() == PAGE => filter.before = Some(last.id.clone()),
                Some(_) | None => break,
            }
        }
        *self.waiting() = Some(waiting);
        Ok(())
    }

    pub(super) fn observed_by(self: &Arc<Self>, meter: &Meter) {
        let look_up = |metric, of: fn(Waiting) -> u64| {
            let backlog = self.clone();
            observe(meter, metric, move || backlog.waiting().map(of));
        };
        look_up(Metric::RunsPending, |waiting| waiting.runs);
        look_up(Metric::ApprovalsPending, |waiting| waiting.approvals);
        look_up(Metric::OldestApproval, |waiting| waiting.oldest.map_or(0, age));
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn age(since: Timestamp) -> u64 {
    u64::try_from(Timestamp::now().duration_since(since).as_secs()).unwrap_or(0)
}
