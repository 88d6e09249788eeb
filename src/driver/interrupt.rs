//! While a model or a tool is at work, somebody may end the run: in this process, or in another one.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;

use super::elicitation::HeldCalls;
use super::{Driver, Journal};
use crate::core::id::CallId;
use crate::core::run::{Event, Recorded};

/// What the driver of a run hears from others in this process: that its journal was written to, which is only a hint
/// (polling is the truth), and how long its calls are to be held open.
#[derive(Clone, Debug, Default)]
pub struct Hint {
    written: Arc<Notify>,
    holding: Arc<Mutex<Holding>>,
}

/// Whether calls are held open for answers to their servers.
#[derive(Debug, Default)]
struct Holding {
    /// How many people look on who are asked in this process.
    attended: usize,
    /// Whether no call is to be held any longer.
    is_over: bool,
    /// The calls that are not to be held any longer.
    released: BTreeSet<CallId>,
}

impl Hint {
    /// Something was written.
    pub fn wake(&self) {
        self.written.notify_one();
    }

    /// Waits for a write, also one since the last wait.
    pub(crate) async fn heard(&self) {
        self.written.notified().await;
    }

    /// Waits for a write from now on.
    pub(crate) async fn woken(&self) {
        // What was written before is known by now.
        let _ = self.written.notified().now_or_never();
        self.written.notified().await;
    }

    /// A person in this process is asked what servers want to know: calls are held as long as that takes.
    pub(crate) fn attend(&self) {
        self.holding().attended += 1;
    }

    /// That person went away.
    pub(crate) fn leave(&self) {
        let mut holding = self.holding();
        holding.attended = holding.attended.saturating_sub(1);
    }

    /// A call is not to be held any longer.
    pub(crate) fn release(&self, call: CallId) {
        self.holding().released.insert(call);
        self.wake();
    }

    /// No call is to be held any longer.
    pub(crate) fn release_all(&self) {
        self.holding().is_over = true;
        self.wake();
    }

    pub(super) fn is_attended(&self) -> bool {
        self.holding().attended > 0
    }

    /// Whether a call is not to be held. The next question of the same call is held again.
    pub(super) fn releases(&self, call: &CallId) -> bool {
        let mut holding = self.holding();
        holding.released.remove(call) || holding.is_over
    }

    /// Whether there is something to do about held calls.
    fn releases_any(&self, held: &HeldCalls) -> bool {
        let holding = self.holding();
        (holding.is_over && !held.is_empty()) || holding.released.iter().any(|call| held.contains(call))
    }

    fn holding(&self) -> MutexGuard<'_, Holding> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a step that was being waited for came out.
pub(super) enum Waited<T> {
    /// It finished.
    Done(T),
    /// The run was ended or taken over by somebody else, or its time is up; the step was dropped, which cancels it.
    Interrupted,
}

/// What was found in the journal, or heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The run was ended, or is driven by another process.
    RunLost,
    /// An answer for a call that is held open, or it is not to be held any longer.
    ForHeldCalls,
}

impl Driver<'_> {
    /// Waits for a step, unless the run ends before.
    pub(super) async fn unless_ended<T>(&self, journal: &Journal, step: impl Future<Output = T>) -> Waited<T> {
        tokio::select! {
            biased;
            done = step => Waited::Done(done),
            () = self.ended_elsewhere(journal) => Waited::Interrupted,
            () = self.out_of_time(journal) => Waited::Interrupted,
        }
    }

    async fn ended_elsewhere(&self, journal: &Journal) {
        while self.news(journal, &HeldCalls::default()).await != News::RunLost {}
    }

    /// Waits until the run is lost, or there is something for a call that is held open.
    pub(super) async fn news(&self, journal: &Journal, held: &HeldCalls) -> News {
        loop {
            if self.hint.releases_any(held) {
                return News::ForHeldCalls;
            }
            tokio::select! {
                () = self.hint.written.notified() => {}
                () = tokio::time::sleep(self.ports.poll) => {}
            }
            // A store that does not answer is found out by the next commit.
            let tail = self.ports.store.runs.load(journal.id(), journal.committed()).await.unwrap_or_default();
            // Only a driver writes that it took the run up: ours lost it, and whatever it waits for is in doubt to the other.
            let lost = |recorded: &Recorded| matches!(recorded.event, Event::Ended { .. } | Event::Resumed { .. });
            let answers =
                |recorded: &Recorded| matches!(&recorded.event, Event::InputGiven { call, .. } if held.contains(call));
            if tail.iter().any(lost) {
                return News::RunLost;
            }
            if tail.iter().any(answers) {
                return News::ForHeldCalls;
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
