//! What other processes decide while the person at the terminal is asked about it.

use std::time::Duration;

use crate::app::App;
use crate::core::id::RunId;
use crate::core::run::{Debt, Run};
use crate::ports::Update;
use crate::runner::{Lookout, News, Watch};

/// How often the store is asked whether another process wrote to the run.
const POLL: Duration = Duration::from_millis(500);

/// A run whose questions are asked here and may be answered elsewhere.
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

    /// Waits until the run does not ask for this any more: it was given elsewhere, or has expired, or the run is over. The
    /// length of its journal then. May be dropped and asked for again.
    pub(super) async fn settles(&mut self, debt: &Debt) -> u64 {
        loop {
            // A store that does not answer settles nothing.
            if let Ok(state) = self.app.runner.load(self.run).await
                && !asks(&state, debt)
            {
                return state.length();
            }
            self.moved().await;
        }
    }

    /// Waits until there is something new in the journal.
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

/// Whether the run still asks the very same.
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
