//! Catch-up of spans: sends from the journals what a collector lacks of runs that are not executed (decision 0057). Their
//! process was killed before it sent all spans, or gave some up in an outage.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::core::id::RunId;
use crate::core::run::JournalEntry;
use crate::ports::{ClaimedSpans, RunStore, SPAN_LEASE, SpanClaim, StoreError};
use crate::runner::AgentRunner;
use crate::telemetry::SpanSink;

/// The pause between two passes.
const PAUSE: Duration = Duration::from_secs(10);
/// The pause before another claim.
const RETRY: Duration = Duration::from_millis(500);
/// How many runs are listed at once.
const LISTED: usize = 100;
/// After so many runs in succession whose spans the collector did not accept, a pass ends.
const REFUSALS: u32 = 3;

/// The longest pause before the spans of a run that the collector did not accept are sent again.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The runs whose spans the collector did not accept: until when each waits, and for how long the next time.
type Refused = HashMap<RunId, (Instant, Duration)>;

/// Sends what is missing.
#[derive(Clone)]
pub(in crate::app) struct CatchUp {
    pub(in crate::app) sink: Arc<SpanSink>,
    pub(super) store: Arc<dyn RunStore>,
}

impl CatchUp {
    /// Sends again and again what is missing of idle and ended runs.
    pub(in crate::app) async fn run(self, runner: AgentRunner) {
        let (mut after, mut refused) = (None, Refused::new());
        loop {
            if let Err(error) = self.pass(&runner, &mut after, &mut refused).await {
                tracing::warn!(%error, "failed to list runs with unsent spans");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A pass over the runs that follow `after`, which moves.
    async fn pass(
        &self,
        runner: &AgentRunner,
        after: &mut Option<RunId>,
        refused: &mut Refused,
    ) -> Result<(), StoreError> {
        let mut refusals = 0;
        loop {
            let runs = self.store.unsent_spans(after.as_ref(), LISTED).await?;
            if runs.is_empty() {
                *after = None;
                return Ok(());
            }
            for run in runs {
                // One run at a time: a collector that rejects its spans rejects no others with them.
                let waits = refused.get(&run).is_some_and(|(until, _)| Instant::now() < *until);
                if !waits && let Some(sent) = self.send(runner, &run).await {
                    if self.sink.settled(&run).await {
                        refused.remove(&run);
                        refusals = 0;
                    } else {
                        let wait = refused.get(&run).map_or(PAUSE, |(_, next)| *next);
                        refused.insert(run.clone(), (Instant::now() + wait, (wait * 2).min(LONGEST_WAIT)));
                        refusals += 1;
                    }
                    tracing::debug!(%run, spans = sent, refusals, "spans sent from the journal");
                }
                *after = Some(run);
                if refusals >= REFUSALS {
                    return Ok(());
                }
            }
        }
    }

    /// Queues the missing spans of a run, and returns their number; `None` if another exporter has them, or the journal cannot
    /// be read.
    async fn send(&self, runner: &AgentRunner, run: &RunId) -> Option<usize> {
        let journal = match runner.journal_with_conversation(run).await {
            Ok(journal) => journal,
            Err(error) => {
                tracing::warn!(%run, %error, "failed to read the journal of a run with unsent spans");
                return None;
            }
        };
        match self.claim(run, &journal).await {
            Ok(ClaimedSpans::From(from)) => Some(self.sink.send_from(run, &journal, from)),
            Ok(ClaimedSpans::Held | ClaimedSpans::Unmarked) => None,
            Err(error) => {
                tracing::warn!(%run, %error, "failed to claim the spans of a run");
                None
            }
        }
    }

    async fn claim(&self, run: &RunId, journal: &[JournalEntry]) -> Result<ClaimedSpans, StoreError> {
        let at = journal.len() as u64;
        self.store.claim_spans(&SpanClaim { run: run.clone(), at, is_abandoned: false, lease: SPAN_LEASE }).await
    }

    /// Claims the lease of a run's spans, and waits for a lease that expires.
    pub(in crate::app) async fn claim_patiently(
        &self,
        run: &RunId,
        journal: &[JournalEntry],
    ) -> Result<ClaimedSpans, StoreError> {
        let began = Instant::now();
        loop {
            let claimed = self.claim(run, journal).await?;
            if claimed != ClaimedSpans::Held || began.elapsed() > SPAN_LEASE {
                return Ok(claimed);
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Sends what this process left, because the exporter of an earlier execution had the lease.
    pub(in crate::app) async fn send_left(&self, runner: &AgentRunner) {
        for run in self.sink.left() {
            self.send(runner, &run).await;
        }
    }
}
