//! Interruption: while a model call or a tool call is running, this or another process may end the run.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;
use toolgate_core::id::CallId;
use toolgate_core::run::{Event, JournalEntry};

use super::elicitation::HeldCalls;
use super::{Driver, Journal};

/// Wake signal for the driver of a run, from within this process: its journal was written to, and how long its calls
/// are to be held open. Polling guarantees delivery; the signal only reduces latency.
#[derive(Clone, Debug, Default)]
pub struct WakeSignal {
    written: Arc<Notify>,
    holding: Arc<Mutex<HoldState>>,
}

/// The state of holds for elicitation answers.
#[derive(Debug, Default)]
struct HoldState {
    /// The number of people in this process who are being asked.
    attended: usize,
    /// Whether no call is held any longer.
    is_over: bool,
    /// The calls that are not held any longer.
    released: BTreeSet<CallId>,
}

impl WakeSignal {
    /// Signals a write.
    pub fn wake(&self) {
        self.written.notify_one();
    }

    /// Waits for a write, including one since the last wait.
    pub async fn notified(&self) {
        self.written.notified().await;
    }

    /// Waits for a write from now on.
    pub async fn next_notification(&self) {
        // Earlier writes are already known.
        let _ = self.written.notified().now_or_never();
        self.written.notified().await;
    }

    /// Registers a person in this process who is asked the servers' questions: calls are held as long as that takes.
    pub fn attend(&self) {
        self.holding().attended += 1;
    }

    /// Removes the registration.
    pub fn leave(&self) {
        let mut holding = self.holding();
        holding.attended = holding.attended.saturating_sub(1);
    }

    /// Ends the hold of a call.
    pub fn release(&self, call: CallId) {
        self.holding().released.insert(call);
        self.wake();
    }

    /// Ends the holds of all calls.
    pub fn release_all(&self) {
        self.holding().is_over = true;
        self.wake();
    }

    pub(super) fn is_attended(&self) -> bool {
        self.holding().attended > 0
    }

    /// Whether the hold of a call is over. The next question of the same call is held again.
    pub(super) fn releases(&self, call: &CallId) -> bool {
        let mut holding = self.holding();
        holding.released.remove(call) || holding.is_over
    }

    /// Whether any held call has to be released.
    fn releases_any(&self, held: &HeldCalls) -> bool {
        let holding = self.holding();
        (holding.is_over && !held.is_empty()) || holding.released.iter().any(|call| held.contains(call))
    }

    fn holding(&self) -> MutexGuard<'_, HoldState> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of waiting for a step.
pub(super) enum StepOutcome<T> {
    /// It finished.
    Done(T),
    /// The run was ended or claimed by another process, or its deadline passed; the step was dropped, which cancels it.
    Interrupted,
}

/// Interruption from the journal or the wake signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// The run was ended, or another process drives it.
    RunLost,
    /// There is an answer for a held call, or its hold is over.
    ForHeldCalls,
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

    async fn ended_elsewhere(&self, journal: &Journal) {
        while self.news(journal, &HeldCalls::default()).await != Interruption::RunLost {}
    }

    /// Waits until the run is lost, or there is news for a held call.
    pub(super) async fn news(&self, journal: &Journal, held: &HeldCalls) -> Interruption {
        loop {
            if self.hint.releases_any(held) {
                return Interruption::ForHeldCalls;
            }
            tokio::select! {
                () = self.hint.written.notified() => {}
                () = tokio::time::sleep(self.ports.poll) => {}
            }
            // The next commit detects a store that does not answer.
            let tail = self.ports.store.runs.load(journal.id(), journal.committed()).await.unwrap_or_default();
            // Only a driver records a resume: our process has lost the run, and the other one treats its open calls as
            // in doubt.
            let lost = |recorded: &JournalEntry| matches!(recorded.event, Event::Ended { .. } | Event::Resumed { .. });
            let answers = |recorded: &JournalEntry| matches!(&recorded.event, Event::InputGiven { call, .. } if held.contains(call));
            if tail.iter().any(lost) {
                return Interruption::RunLost;
            }
            if tail.iter().any(answers) {
                return Interruption::ForHeldCalls;
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
