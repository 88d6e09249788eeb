//! Execution of a run in this process, as its caller sees it.

use std::sync::Arc;

use toolgate_core::id::RunId;
use toolgate_core::run::{Event, JournalEntry, Run};
use toolgate_driver::Journal;
use toolgate_ports::Update;

use super::registry::SharedResult;
use super::{Report, RunnerError, Watch};

/// The execution of a run in this process. Dropping it does not affect the run.
#[derive(Debug)]
pub struct Execution {
    pub run: RunId,
    /// The updates since the first event of this execution.
    pub updates: Watch,
    pub(super) rest: SharedResult,
}

/// A run that is pending or has ended, as the execution left it.
#[derive(Clone, Debug)]
pub struct IdleRun {
    id: RunId,
    run: Arc<Run>,
}

impl IdleRun {
    pub(super) fn new(journal: Journal) -> Self {
        Self { id: journal.id().clone(), run: Arc::new(journal.into_run()) }
    }

    /// The fold of its journal.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Its report.
    pub fn report(&self) -> Report {
        Report::new(self.id.clone(), &self.run)
    }
}

impl Execution {
    /// Waits until the run is idle: pending or ended.
    pub async fn until_idle(self) -> Result<Report, RunnerError> {
        self.idle().await.map(|idle| idle.report())
    }

    pub(super) async fn idle(self) -> Result<IdleRun, RunnerError> {
        self.rest.await.unwrap_or(Err(RunnerError::Lost(self.run)))
    }

    /// The same with the run itself, but returns `None` as soon as a server asks for input on a call that stays open for it. The caller may
    /// be the one who can answer.
    pub async fn idle_or_elicitation(self) -> Option<Result<IdleRun, RunnerError>> {
        let Self { run, mut updates, rest } = self;
        let elicitation = async {
            while let Some(update) = updates.next().await {
                if let Update::JournalEntry(JournalEntry { event: Event::InputRequested { .. }, .. }) = update {
                    return;
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            rested = rest => Some(rested.unwrap_or(Err(RunnerError::Lost(run)))),
            () = elicitation => None,
        }
    }

    /// The updates, and the wait until the run is idle.
    pub fn split(self) -> (Watch, impl Future<Output = Result<Report, RunnerError>>) {
        let Self { run, updates, rest } = self;
        (updates, async move { rest.await.unwrap_or(Err(RunnerError::Lost(run))).map(|idle| idle.report()) })
    }
}
