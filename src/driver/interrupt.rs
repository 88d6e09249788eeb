//! Interruption: while a model call or a tool call is running, this or another process may end the run.

use std::future::Future;
use std::time::Duration;

use toolgate_core::run::{Event, JournalEntry};

use super::elicitation::HeldCalls;
use super::{Driver, Journal};

/// The result of waiting for a step.
pub(super) enum StepOutcome<T> {
    Done(T),
    /// The run was ended or claimed by another process, or its deadline passed; the step was dropped, which cancels it.
    Interrupted,
}

/// Interruption from the journal or the wake signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// The run was ended or is to be compensated, or another process drives it.
    RunLost,
    /// A call of the tier was decided about, or a held call has an answer or its hold is over.
    ForCalls,
}

impl Driver<'_> {
    /// Waits for a step, unless the run ends first.
    pub(super) async fn unless_ended<T>(&self, journal: &Journal, step: impl Future<Output = T>) -> StepOutcome<T> {
        tokio::select! {
            biased;
            done = step => StepOutcome::Done(done),
            () = self.ended_elsewhere(journal) => StepOutcome::Interrupted,
            () = self.out_of_time(journal) => StepOutcome::Interrupted,
        }
    }

    /// Waits for a step that a pause prevents, unless the run is paused or ends first.
    pub(super) async fn unless_stopped<T>(&self, journal: &Journal, step: impl Future<Output = T>) -> StepOutcome<T> {
        tokio::select! {
            biased;
            waited = self.unless_ended(journal, step) => waited,
            () = self.paused_elsewhere(journal) => StepOutcome::Interrupted,
        }
    }

    async fn paused_elsewhere(&self, journal: &Journal) {
        loop {
            tokio::time::sleep(self.ports.poll).await;
            let tail = self.ports.store.runs.load(journal.id(), journal.committed()).await.unwrap_or_default();
            if tail.iter().any(|recorded| matches!(recorded.event, Event::Paused { .. })) {
                return;
            }
        }
    }

    async fn ended_elsewhere(&self, journal: &Journal) {
        while self.news(journal, &HeldCalls::default()).await != Interruption::RunLost {}
    }

    /// Waits until the run is lost, or there is news for a call of the tier.
    pub(super) async fn news(&self, journal: &Journal, held: &HeldCalls) -> Interruption {
        loop {
            if self.wake.releases_any(held.calls()) {
                return Interruption::ForCalls;
            }
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(self.ports.poll) => {}
            }
            // The next commit detects a store that does not answer.
            let tail = self.ports.store.runs.load(journal.id(), journal.committed()).await.unwrap_or_default();
            // Only a driver records a resume: our process has lost the run, and the other one treats its open calls as
            // in doubt.
            let lost = |JournalEntry { event, .. }: &JournalEntry| {
                matches!(event, Event::Ended { .. } | Event::CompensationStarted { .. } | Event::Resumed { .. })
            };
            let answers = |event: &Event| matches!(event, Event::InputGiven { call, .. } if held.contains(call));
            let concerns_calls = |JournalEntry { event, .. }: &JournalEntry| {
                matches!(event, Event::ApprovalDecided { .. }) || answers(event)
            };
            if tail.iter().any(lost) {
                return Interruption::RunLost;
            }
            if tail.iter().any(concerns_calls) {
                return Interruption::ForCalls;
            }
        }
    }

    pub(super) async fn out_of_time(&self, journal: &Journal) {
        match self.time_left(journal) {
            Some(left) => self.ports.clock.sleep(left.max(Duration::from_millis(1))).await,
            None => std::future::pending().await,
        }
    }
}
