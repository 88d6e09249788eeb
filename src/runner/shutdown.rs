//! Graceful shutdown: active runs may become idle. The runner releases the remaining ones between two steps, where
//! nothing is in flight, and gives up their leases, so that another process resumes them at once.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_core::id::RunId;
use toolgate_core::run::{Event, JournalEntry, Status};
use toolgate_driver::{DriveError, Journal, Progress};

use super::AgentRunner;

/// How long the remaining tasks may take to end after all runs are released.
const LAST_TOUCHES: Duration = Duration::from_secs(5);

/// How long a drain waits for runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainTimes {
    /// Time for runs to become idle.
    pub rest: Duration,
    /// Time for runs to finish their current step. After that the step is aborted: the model is called again, and the
    /// outcome of a tool call is unknown.
    pub step: Duration,
}

/// The phases of a shutdown.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// New runs are rejected, and queued runs are released.
    pub(super) begun: CancellationToken,
    /// Runs are released where nothing is in flight.
    pub(super) releasing: CancellationToken,
    /// Runs are released at any point.
    pub(super) cut: CancellationToken,
}

impl AgentRunner {
    /// Stops accepting runs, waits for active ones, and releases those that do not become idle in time. Returns how
    /// many were still active when the time for their step was over. Callers that wait for a released run receive
    /// [`RunnerError::Released`](super::RunnerError::Released). The journal of a released run is its complete state,
    /// and no process owns it.
    pub async fn drain(&self, times: DrainTimes) -> usize {
        let (drain, tasks) = (&self.inner.drain, &self.inner.tasks);
        tasks.close();
        drain.begun.cancel();
        if timeout(times.rest, tasks.wait()).await.is_ok() {
            return 0;
        }
        drain.releasing.cancel();
        if timeout(times.step, tasks.wait()).await.is_ok() {
            return 0;
        }
        let at_work = self.inner.active_runs.runs().len();
        drain.cut.cancel();
        if timeout(LAST_TOUCHES, tasks.wait()).await.is_err() {
            tracing::warn!("tasks of runs did not end in time and are abandoned");
        }
        at_work
    }

    /// Commits the staged events before the run is released, after the events of other writers if there are any, and
    /// records when its execution ended.
    pub(super) async fn release(&self, journal: &mut Journal) -> Result<(), DriveError> {
        while journal.commit().await? == Progress::CaughtUp {}
        if let Err(error) = self.interrupt(journal).await {
            tracing::warn!(run = %journal.id(), %error, "failed to record the end of an interrupted execution");
        }
        Ok(())
    }

    /// Records that the execution stops in the middle, unless the run is idle.
    async fn interrupt(&self, journal: &mut Journal) -> Result<(), DriveError> {
        while journal.run().status() == Status::Running {
            journal.stage(Event::Interrupted { alive_at: None })?;
            if journal.commit().await? == Progress::Committed {
                break;
            }
        }
        Ok(())
    }

    /// The event for an execution whose process died, if it is known until when that process was alive: for runs that are
    /// not idle. `renewed` is the last renewal of its lease.
    pub(super) fn death(journal: &Journal, history: &[JournalEntry], renewed: Option<Timestamp>) -> Option<Event> {
        if journal.run().status() != Status::Running {
            return None;
        }
        let is_boundary = |event: &Event| event.trace().is_some() || matches!(event, Event::Interrupted { .. });
        let last = history.iter().rfind(|recorded| is_boundary(&recorded.event))?;
        let is_recorded = matches!(last.event, Event::Interrupted { .. });
        renewed.filter(|_| !is_recorded).map(|at| Event::Interrupted { alive_at: Some(at) })
    }

    /// Gives up the lease of a run, so that the next process can claim it at once.
    pub(super) async fn give_up(&self, run: &RunId) {
        let store = &self.inner.ports.store;
        if let Err(error) = store.runs.renew(&store.node, std::slice::from_ref(run), Duration::ZERO).await {
            tracing::warn!(%run, %error, "failed to give up the lease of a released run; the run is free once the lease expires");
        }
    }
}
