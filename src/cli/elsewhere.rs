//! Decisions that other processes make while the terminal shows a prompt for them.

use std::time::Duration;

use crate::app::App;
use crate::core::id::RunId;
use crate::core::run::{Debt, Run};
use crate::ports::Update;
use crate::runner::{Lookout, News, Watch};

/// The poll interval for changes that another process writes to the run.
const POLL: Duration = Duration::from_millis(500);

/// A run with prompts here that another process may answer.
pub(super) struct Elsewhere<'a> {
    app: &'a App,
    run: &'a RunId,
    lookout: Lookout,
    watch: Watch,
}

impl<'a> Elsewhere<'a> {
    pub(super) fn of(app: &'a App, run: &'a RunId) -> Self {
        let lookout = app.runner.lookout(run);
        let watch = watched(&lookout);
        Self { app, run, lookout, watch }
    }

    /// Waits until the item is no longer pending: another process answered it, it expired, or the run ended. Returns
    /// the length of the journal at that time. Cancel-safe.
    pub(super) async fn settles(&mut self, debt: &Debt) -> u64 {
        loop {
            // An error of the store resolves no item.
            if let Ok(state) = self.app.runner.load(self.run).await
                && !asks(&state, debt)
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
                News::Update(update) if matches!(*update, Update::Delta(_)) => {}
                News::Update(_) | News::Behind => return,
                News::Over => {
                    self.watch = watched(&self.lookout);
                    return;
                }
            }
        }
    }
}

fn watched(lookout: &Lookout) -> Watch {
    let watch = lookout.watch();
    lookout.follow(POLL);
    watch
}

/// Whether the same item is still pending.
fn asks(state: &Run, shown: &Debt) -> bool {
    state.debts().iter().any(|debt| match (debt, shown) {
        (Debt::Approval { event, .. }, Debt::Approval { event: shown, .. }) => event == shown,
        (
            Debt::Input { call_id, questions, held, .. },
            Debt::Input { call_id: call_shown, questions: shown, held: held_shown, .. },
        ) => (call_id, questions, held) == (call_shown, shown, held_shown),
        (debt, shown) => (debt.call_id(), debt.kind()) == (shown.call_id(), shown.kind()),
    })
}
