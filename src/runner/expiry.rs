//! Expiry of overdue items: a timer sweeps the idle runs.
//!
//! Deadlines hold without the sweep, because every access to a run writes its expired items first. The sweep only makes
//! this happen soon, so that the model is informed and the run continues.

use jiff::Timestamp;
use toolgate_core::id::{CallId, RunId};
use toolgate_core::run::{Event, Input, JournalEntry, Resume, Run, Status};
use toolgate_driver::DriveError;
use toolgate_ports::RunFilter;

use super::{AgentRunner, Execution, RunnerError};

/// How many rows of the index are read at a time.
const PAGE: usize = 500;

/// A run with overdue items, or a run whose state could not be read.
#[derive(Debug)]
pub struct ExpiredRun {
    pub run: RunId,
    pub late: ExpiredItems,
    /// The execution of the run, or why it could not be resumed. In that case the items are still overdue, and the next
    /// sweep finds them again.
    pub taken: Result<Execution, RunnerError>,
}

/// Expired items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpiredItems {
    Calls(Vec<CallId>),
    /// The deadline of the run itself.
    Run,
    /// Unknown: the run could not be read and was not changed.
    Unknown,
}

impl AgentRunner {
    /// The current time for comparisons with deadlines.
    pub fn now(&self) -> Timestamp {
        self.inner.ports.clock.now()
    }

    /// The current state of a run, including expiry events that are not written yet, and its journal.
    pub async fn at_now(&self, run: &RunId) -> Result<(Run, Vec<JournalEntry>), RunnerError> {
        let (journal, history) = self.open(run).await?;
        Ok((journal.at_now()?.0, history))
    }

    /// Resumes every pending run with overdue items: the model is informed that there was no answer in time, or the run
    /// ends as expired. Repeated and concurrent sweeps have the same effect as one.
    pub async fn expire_due(&self) -> Result<Vec<ExpiredRun>, RunnerError> {
        let mut overdue = Vec::new();
        for run in self.due_runs().await? {
            overdue.extend(self.expire(run).await);
        }
        Ok(overdue)
    }

    /// Resumes a pending run if it has overdue items.
    pub async fn expire(&self, run: RunId) -> Option<ExpiredRun> {
        let late = match self.expired(&run).await {
            Ok(Some(late)) => late,
            Ok(None) | Err(RunnerError::NoSuchRun(_)) => return None,
            Err(error) => return Some(ExpiredRun { run, late: ExpiredItems::Unknown, taken: Err(error) }),
        };
        let taken = self.resume_run(&run, Input::Resume(Resume::default()), None).await;
        Some(ExpiredRun { run, late, taken })
    }

    async fn expired(&self, run: &RunId) -> Result<Option<ExpiredItems>, RunnerError> {
        let late = self.open(run).await?.0.expired_items();
        if late.iter().any(|event| matches!(event, Event::Ended { .. })) {
            return Ok(Some(ExpiredItems::Run));
        }
        let calls: Vec<CallId> = late.iter().flat_map(Event::calls).cloned().collect();
        Ok((!calls.is_empty()).then_some(ExpiredItems::Calls(calls)))
    }

    /// The pending runs that are overdue according to the index. They are collected before any of them is resumed,
    /// because a resumed run may become pending again.
    async fn due_runs(&self) -> Result<Vec<RunId>, RunnerError> {
        let (statuses, due_by) = (vec![Status::Pending], Some(self.now()));
        let mut filter = RunFilter { statuses, due_by, limit: PAGE, ..RunFilter::default() };
        let mut runs: Vec<RunId> = Vec::new();
        loop {
            let page = self.inner.ports.store.runs.list(&filter).await.map_err(DriveError::from)?;
            let is_last = page.len() < PAGE;
            runs.extend(page.into_iter().map(|row| row.id));
            filter.before = runs.last().cloned();
            if is_last {
                return Ok(runs);
            }
        }
    }
}
