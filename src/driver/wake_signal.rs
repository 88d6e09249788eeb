//! Wake signal: wakes the driver of a run from within this process, and ends holds of its calls.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use tokio::sync::Notify;
use toolgate_core::id::CallId;

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
    pub fn notify(&self) {
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
        self.notify();
    }

    /// Ends the holds of all calls.
    pub fn release_all(&self) {
        self.holding().is_over = true;
        self.notify();
    }

    pub(super) fn is_attended(&self) -> bool {
        self.holding().attended > 0
    }

    /// Whether the hold of a call is over. The next question of the same call is held again.
    pub(super) fn releases(&self, call: &CallId) -> bool {
        let mut holding = self.holding();
        holding.released.remove(call) || holding.is_over
    }

    /// Whether the hold of any of these calls is over.
    pub(super) fn releases_any<'a>(&self, mut calls: impl Iterator<Item = &'a CallId>) -> bool {
        let holding = self.holding();
        calls.any(|call| holding.is_over || holding.released.contains(call))
    }

    fn holding(&self) -> MutexGuard<'_, HoldState> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
