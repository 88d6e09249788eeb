//! Notifications about a run, whichever process executes it: its updates in this process, and that another process wrote
//! to its journal.

use std::task::Poll;
use std::time::Duration;

use toolgate_core::run::JournalEntry;
use toolgate_ports::{RunRow, Update};
use toolgate_runner::{ReplySoFar, RunSubscription, RunnerError, Watch, WatchEvent};

/// A watch that outlives executions: when this process no longer executes the run, it subscribes again.
pub(super) struct RunWatch {
    subscription: RunSubscription,
    /// How often to poll the store for entries that other processes write.
    poll: Duration,
    watch: Watch,
}

/// A notification about a run.
pub(super) enum RunNotification {
    /// An update from this process.
    Update(Box<Update>),
    /// The journal may have entries that no update reported.
    Behind,
}

impl RunWatch {
    /// `watch` has received everything since before this call: whatever it lacks is in the journal. `None`: since this
    /// call.
    pub(super) fn new(subscription: RunSubscription, watch: Option<Watch>, poll: Duration) -> Self {
        let watch = watch.unwrap_or_else(|| subscription.watch());
        subscription.follow(poll);
        Self { subscription, poll, watch }
    }

    /// The next notification. Cancel-safe.
    pub(super) async fn next(&mut self) -> RunNotification {
        match self.watch.news().await {
            WatchEvent::Update(update) => RunNotification::Update(update),
            WatchEvent::Behind => RunNotification::Behind,
            WatchEvent::Over => self.subscribe_again(),
        }
    }

    /// The next notification if there is one.
    pub(super) fn try_next(&mut self) -> Option<RunNotification> {
        match self.watch.try_next() {
            Poll::Ready(Some(update)) => Some(RunNotification::Update(update.into())),
            Poll::Ready(None) => Some(self.subscribe_again()),
            Poll::Pending => None,
        }
    }

    /// What a model streamed so far of its current reply to this process.
    pub(super) fn reply_so_far(&self) -> Option<ReplySoFar> {
        self.watch.reply_so_far()
    }

    /// Subscribes to the process that resumes the run, before the journal is read.
    fn subscribe_again(&mut self) -> RunNotification {
        self.watch = self.subscription.watch();
        self.subscription.follow(self.poll);
        RunNotification::Behind
    }

    /// The entries of the journal from a position on.
    pub(super) async fn facts(&self, from: u64) -> Result<Vec<JournalEntry>, RunnerError> {
        self.subscription.facts(from).await
    }

    /// The index row, also of a deleted run.
    pub(super) async fn row(&self) -> Result<RunRow, RunnerError> {
        self.subscription.row().await
    }
}
