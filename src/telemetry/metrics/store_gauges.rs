//! Store gauges: pending runs and approvals in the store. They describe the store and not the runs of this process, so
//! they are read from the store's index in the background: a reader of metrics never waits for a store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use opentelemetry::metrics::Meter;
use toolgate_core::run::Status;
use toolgate_ports::{RunFilter, RunStore, StoreError};

use super::instruments::observe;
use super::names::Metric;

/// Rows of the index per page.
const PAGE: usize = 500;

/// The counts of the last refresh.
#[derive(Debug, Default)]
pub struct StoreGauges(Mutex<Option<PendingTotals>>);

#[derive(Clone, Copy, Debug, Default)]
struct PendingTotals {
    runs: u64,
    approvals: u64,
    oldest: Option<Timestamp>,
}

impl StoreGauges {
    /// Reads the counts from the store. Until the store answers, the previous counts stay.
    pub async fn refresh(&self, store: &dyn RunStore) -> Result<(), StoreError> {
        let mut filter = RunFilter { statuses: vec![Status::Pending], limit: PAGE, ..RunFilter::default() };
        let mut waiting = PendingTotals::default();
        loop {
            let rows = store.list(&filter).await?;
            for row in &rows {
                waiting.runs += 1;
                waiting.approvals += u64::from(row.pending_counts.approvals);
                waiting.oldest = [waiting.oldest, row.pending_counts.asked_at].into_iter().flatten().min();
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
        let look_up = |metric, of: fn(PendingTotals) -> u64| {
            let store_gauges = self.clone();
            observe(meter, metric, move || store_gauges.waiting().map(of));
        };
        look_up(Metric::RunsPending, |waiting| waiting.runs);
        look_up(Metric::ApprovalsPending, |waiting| waiting.approvals);
        look_up(Metric::OldestApproval, |waiting| waiting.oldest.map_or(0, age));
    }

    fn waiting(&self) -> MutexGuard<'_, Option<PendingTotals>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn age(since: Timestamp) -> u64 {
    u64::try_from(Timestamp::now().duration_since(since).as_secs()).unwrap_or(0)
}
