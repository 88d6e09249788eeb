//! Span marks: counts the spans of each run that wait for a receiver, and moves the marks of the runs in the store after
//! they were accepted (decision 0057). One statement moves the marks of many runs, on the thread of the exporter.
//!
//! After a span of a run was given up, no later span of the run is sent: the mark would never pass the gap, so they would
//! be sent twice.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use toolgate_core::id::RunId;
use toolgate_ports::{RunStore, SPAN_LEASE, SpanMark, StoreError};

/// The interval of lease renewals.
const RENEWAL: Duration = Duration::from_secs(2);
/// How long marks wait for those of other runs: after a kill in this time, spans are sent again.
const GATHER: Duration = Duration::from_millis(20);

/// The progress of the runs whose spans this process exports.
#[derive(Debug, Default)]
pub(super) struct Marks {
    runs: Mutex<HashMap<RunId, Progress>>,
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Progress {
    /// The position before which the projector finishes no further span.
    finished_to: u64,
    /// The number of spans that wait, by the position that finished them.
    waiting: BTreeMap<u64, u32>,
    /// The first position of which a span was given up.
    given_up: Option<u64>,
    /// Whether this process adds no further spans.
    is_released: bool,
    /// What the store has, and since when.
    stored: Option<(u64, Instant)>,
}

/// A span of a run in the queue. If it is dropped before it was [accepted](Self::accepted), the span was given up.
#[derive(Debug)]
pub(super) struct Receipt {
    marks: Arc<Marks>,
    run: RunId,
    seq: u64,
    is_accepted: bool,
}

/// What becomes of a span.
pub(super) enum Admission {
    /// Its run has no mark.
    Unmarked,
    Marked(Receipt),
    /// A span of its run was given up: the catch-up sends it.
    Left,
}

impl Marks {
    /// Adds a run whose lease this process claimed.
    pub(super) fn begin(&self, run: &RunId, from: u64) {
        let (waiting, given_up, is_released, stored) = (BTreeMap::new(), None, false, None);
        let fresh = Progress { finished_to: from, waiting, given_up, is_released, stored };
        self.runs().insert(run.clone(), fresh);
    }

    /// Continues a run that this process exports already. Returns whether it can send further spans of it; `None` if it
    /// does not export it.
    pub(super) fn resume(&self, run: &RunId) -> Option<bool> {
        let mut runs = self.runs();
        let progress = runs.get_mut(run)?;
        if progress.given_up.is_none() {
            (progress.is_released, progress.stored) = (false, None);
        }
        Some(progress.given_up.is_none())
    }

    /// Whether this process exports the run.
    pub(super) fn has(&self, run: &RunId) -> bool {
        self.runs().contains_key(run)
    }

    /// Leaves the run's further spans to the catch-up.
    pub(super) fn give_up(&self, run: &RunId) {
        let mut runs = self.runs();
        runs.get_mut(run).into_iter().for_each(|progress| {
            progress.given_up.get_or_insert(progress.finished_to);
        });
    }

    /// Counts a span of a run that waits from now on.
    pub(super) fn admit(self: &Arc<Self>, run: &RunId, seq: u64) -> Admission {
        match self.runs().get_mut(run) {
            None => Admission::Unmarked,
            Some(Progress { given_up: Some(_), .. }) => Admission::Left,
            Some(progress) => {
                *progress.waiting.entry(seq).or_default() += 1;
                Admission::Marked(Receipt { marks: Arc::clone(self), run: run.clone(), seq, is_accepted: false })
            }
        }
    }

    /// All spans that facts before this position finish were counted.
    pub(super) fn finished(&self, run: &RunId, to: u64) {
        self.runs().get_mut(run).into_iter().for_each(|progress| progress.finished_to = progress.finished_to.max(to));
    }

    /// This process adds no further spans of the run.
    pub(super) fn release(&self, run: &RunId) {
        self.runs().get_mut(run).into_iter().for_each(|progress| progress.is_released = true);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Waits until no span of the run waits; returns whether all were accepted.
    pub(super) async fn settled(&self, run: &RunId) -> bool {
        let mut changes = self.changes.subscribe();
        loop {
            match self.runs().get(run).map(|progress| (progress.waiting.is_empty(), progress.given_up)) {
                None | Some((true, None)) => return true,
                Some((_, Some(_))) => return false,
                Some((false, None)) => {}
            }
            let _ = changes.changed().await; // `self` owns the channel, so it is open
        }
    }

    /// Stores marks after spans were accepted, and renews leases. Never completes.
    pub(super) async fn store_all(self: Arc<Self>, store: Arc<dyn RunStore>) {
        let mut changes = self.changes.subscribe();
        let mut has_complained = false;
        loop {
            if timeout(RENEWAL, changes.changed()).await.is_ok() {
                sleep(GATHER).await;
            }
            if let Err(error) = self.store(&*store, false).await
                && !std::mem::replace(&mut has_complained, true)
            {
                tracing::warn!(%error, "failed to store which spans were sent; they may be sent again");
            }
        }
    }

    /// Stores the marks that changed. The last time, it also releases all leases.
    pub(super) async fn store(&self, store: &dyn RunStore, is_last: bool) -> Result<(), StoreError> {
        let marks = self.due(is_last);
        if marks.is_empty() {
            return Ok(());
        }
        store.mark_spans(&marks).await?;
        self.stored(marks);
        Ok(())
    }

    fn stored(&self, marks: Vec<SpanMark>) {
        let mut runs = self.runs();
        for mark in marks {
            let Some(progress) = runs.get_mut(&mark.run) else { continue };
            if mark.lease.is_zero() && progress.is_over() && progress.sent() == mark.sent {
                runs.remove(&mark.run);
            } else if !mark.lease.is_zero() {
                progress.stored = Some((mark.sent, Instant::now()));
            }
        }
    }

    fn due(&self, is_last: bool) -> Vec<SpanMark> {
        let runs = self.runs();
        let due = runs.iter().filter(|(_, progress)| is_last || progress.is_over() || progress.is_due());
        let mark = |(run, progress): (&RunId, &Progress)| SpanMark {
            run: run.clone(),
            sent: progress.sent(),
            lease: if is_last || progress.is_over() { Duration::ZERO } else { SPAN_LEASE },
        };
        due.map(mark).collect()
    }

    fn settle(&self, receipt: &Receipt) {
        if let Some(progress) = self.runs().get_mut(&receipt.run) {
            if let Some(waiting) = progress.waiting.get_mut(&receipt.seq) {
                *waiting -= 1;
                if *waiting == 0 {
                    progress.waiting.remove(&receipt.seq);
                }
            }
            if !receipt.is_accepted {
                progress.given_up = Some(progress.given_up.map_or(receipt.seq, |first| first.min(receipt.seq)));
            }
        }
        self.changes.send_modify(|count| *count += 1);
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Progress>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// The mark: every span before it was accepted.
    fn sent(&self) -> u64 {
        let missing = self.waiting.keys().next().copied().into_iter().chain(self.given_up).min();
        missing.map_or(self.finished_to, |missing| missing.min(self.finished_to))
    }

    fn is_over(&self) -> bool {
        self.is_released && self.waiting.is_empty()
    }

    fn is_due(&self) -> bool {
        self.stored.is_none_or(|(sent, at)| sent != self.sent() || at.elapsed() >= RENEWAL)
    }
}

impl Receipt {
    /// The receiver accepted the span.
    pub(super) fn accepted(mut self) {
        self.is_accepted = true;
    }

    /// Whether the span is not to be sent any more, because an earlier one of its run was given up.
    pub(super) fn is_void(&self) -> bool {
        let runs = self.marks.runs();
        runs.get(&self.run).and_then(|progress| progress.given_up).is_some_and(|first| first <= self.seq)
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        self.marks.settle(self);
    }
}

#[cfg(test)]
mod tests;
