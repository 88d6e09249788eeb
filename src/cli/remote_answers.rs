//! Decisions that other processes make while the terminal shows a prompt for them.

use std::time::Duration;

use crate::app::App;
use crate::core::id::RunId;
use crate::core::run::{PendingItem, Run};
use crate::ports::Update;
use crate::runner::{RunSubscription, Watch, WatchEvent};

/// The poll interval for changes that another process writes to the run.
const POLL: Duration = Duration::from_millis(500);

/// A run with prompts here that another process may answer.
pub(super) struct RemoteAnswers<'a> {
    app: &'a App,
    run: &'a RunId,
    lookout: RunSubscription,
    watch: Watch,
}

impl<'a> RemoteAnswers<'a> {
    pub(super) fn of(app: &'a App, run: &'a RunId) -> Self {
        let lookout = app.runner.subscription(run);
        let watch = watched(&lookout);
        Self { app, run, lookout, watch }
    }

    /// Waits until the item is no longer pending: another process answered it, it expired, or the run ended. Returns
    /// the length of the journal at that time. Cancel-safe.
    pub(super) async fn settles(&mut self, item: &PendingItem) -> u64 {
        loop {
            // An error of the store resolves no item.
            if let Ok(state) = self.app.runner.load(self.run).await
                && !asks(&state, item)
            {
                return state.length();
            }
            self.moved().await;
        }
    }

    /// Waits for a new entry in the journal.
    async fn moved(&mut self) {
        loop {
            match self.watch.news().await {
                WatchEvent::Update(update) if matches!(*update, Update::Delta(_)) => {}
                WatchEvent::Update(_) | WatchEvent::Behind => return,
                WatchEvent::Over => {
                    self.watch = watched(&self.lookout);
                    return;
                }
            }
        }
    }
}

fn watched(lookout: &RunSubscription) -> Watch {
    let watch = lookout.watch();
    lookout.follow(POLL);
    watch
}

/// Whether the same item is still pending.
fn asks(state: &Run, shown: &PendingItem) -> bool {
    state.pending_items().iter().any(|item| item.is_same_request(shown))
}
