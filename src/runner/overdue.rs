//! What nobody answered in time, taken up: the sweep that a timer does while nobody touches the runs that wait.
//!
//! A deadline holds without it. Whoever touches a run writes down first what is late; the sweep only makes that happen
//! soon, so that the model reads of it and the run goes on.

use jiff::Timestamp;

use super::{AgentRunner, Execution, RunnerError};
use crate::core::id::{CallId, RunId};
use crate::core::run::{Event, Input, Recorded, Resume, Run, Status};
use crate::driver::DriveError;
use crate::ports::RunFilter;

/// How many rows of the index are read at a time.
const PAGE: usize = 500;

/// A run that had something overdue, or of which that cannot be said.
#[derive(Debug)]
pub struct Overdue {
    /// The run.
    pub run: RunId,
    /// What was not answered in time.
    pub late: Late,
    /// The run, going on or over; or why it could not be taken up. It is overdue still, then, and found by the next sweep.
    pub taken: Result<Execution, RunnerError>,
}

/// What came too late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// These calls, whose answers the run waited for.
    Calls(Vec<CallId>),
    /// The run as a whole: its own time is over.
    Run,
    /// Nobody can say: the run cannot be read, and was left alone.
    Unknown,
}

impl AgentRunner {
    /// The time that deadlines are compared with.
    pub fn now(&self) -> Timestamp {
        self.inner.ports.clock.now()
    }

    /// A run as it is by now, with what time alone has come to say and nobody wrote down yet, and its journal.
    pub async fn by_now(&self, run: &RunId) -> Result<(Run, Vec<Recorded>), RunnerError> {
        let (journal, history) = self.open(run).await?;
        Ok((journal.by_now()?.0, history))
    }

    /// Takes up every pending run of which something is overdue: the model reads that nobody answered in time, or the
    /// run ends as expired. Doing it twice, or in several processes at once, is doing it once.
    pub async fn expire_due(&self) -> Result<Vec<Overdue>, RunnerError> {
        let mut overdue = Vec::new();
        for run in self.due_runs().await? {
            let late = match self.late(&run).await {
                Ok(Some(late)) => late,
                Ok(None) | Err(RunnerError::NoSuchRun(_)) => continue,
                Err(error) => {
                    overdue.push(Overdue { run, late: Late::Unknown, taken: Err(error) });
                    continue;
                }
            };
            let taken = self.take_up(&run, Input::Resume(Resume::default()), None).await;
            overdue.push(Overdue { run, late, taken });
        }
        Ok(overdue)
    }

    async fn late(&self, run: &RunId) -> Result<Option<Late>, RunnerError> {
        let late = self.open(run).await?.0.late();
        if late.iter().any(|event| matches!(event, Event::Ended { .. })) {
            return Ok(Some(Late::Run));
        }
        let expired = |event| if let Event::Expired { call } = event { Some(call) } else { None };
        let calls: Vec<CallId> = late.into_iter().filter_map(expired).collect();
        Ok((!calls.is_empty()).then_some(Late::Calls(calls)))
    }

    /// The pending runs of which the index says that something has run out, collected before any of them is touched: what is
    /// taken up may wait again.
    async fn due_runs(&self) -> Result<Vec<RunId>, RunnerError> {
        let (status, due_by) = (Some(Status::Pending), Some(self.now()));
        let mut filter = RunFilter { status, due_by, limit: PAGE, ..RunFilter::default() };
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
