//! Wait for the settlement of a pending item, for example to withdraw a prompt for it.

use std::time::Duration;

use toolgate_core::id::RunId;
use toolgate_core::run::{PendingItem, Run};
use toolgate_ports::Update;

use super::run_watch::{RunNotification, RunWatch};
use crate::operator::Operator;

impl Operator {
    /// Waits until an item is no longer pending: any process answered it, it expired, or the run ended. Returns the
    /// length of the journal at that time. `poll`: how often to poll the store for entries that other processes write.
    pub async fn settled(&self, run: &RunId, item: &PendingItem, poll: Duration) -> u64 {
        let mut watch = RunWatch::new(self.runner.subscription(run), None, poll);
        loop {
            match self.runner.load(run).await {
                Ok(state) if !is_pending(&state, item) => return state.length(),
                Ok(_) => {}
                // The news that led here may be the last, so the journal is read again without waiting for more.
                Err(_) => {
                    tokio::time::sleep(poll).await;
                    continue;
                }
            }
            while let RunNotification::Update(update) = watch.next().await {
                match *update {
                    Update::Delta { .. } => {}
                    Update::JournalEntry(_) => break,
                }
            }
        }
    }
}

/// Whether the same item is still pending.
fn is_pending(state: &Run, shown: &PendingItem) -> bool {
    state.pending_items().iter().any(|item| item.is_same_request(shown))
}
