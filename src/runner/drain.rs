//! Stopping without breaking anything: runs under way may come to rest, and what is still at work then is laid down
//! between two steps, where nothing is in flight, and given up at once, so that another process drives it on.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::AgentRunner;
use crate::core::id::RunId;
use crate::driver::{DriveError, Journal, Progress};

/// How long everything that is not a run may take to end, when all runs are laid down.
const LAST_TOUCHES: Duration = Duration::from_secs(5);

/// How long runs are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainTimes {
    /// To come to rest by themselves.
    pub rest: Duration,
    /// To come to the end of the step they are at. Then it is cut: a model will be asked again, and of a tool call nobody
    /// knows how it ended.
    pub step: Duration,
}

/// How a runner that is to stop stands with its runs.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// Nothing new is begun, and what has not begun yet is given up.
    pub(super) begun: CancellationToken,
    /// Runs are laid down where nothing of them is in flight.
    pub(super) laying: CancellationToken,
    /// Runs are laid down wherever they are.
    pub(super) cut: CancellationToken,
}

impl AgentRunner {
    /// Takes up no more runs, waits for those under way, and lays down what does not come to rest in time. Says how
    /// many were still at work when the time for their step was over. Whoever waits for a run that is laid down is told so
    /// ([`RunnerError::LaidDown`](super::RunnerError::LaidDown)); it is as its journal says and nobody's.
    pub async fn drain(&self, times: DrainTimes) -> usize {
        let (drain, tasks) = (&self.inner.drain, &self.inner.tasks);
        tasks.close();
        drain.begun.cancel();
        if timeout(times.rest, tasks.wait()).await.is_ok() {
            return 0;
        }
        drain.laying.cancel();
        if timeout(times.step, tasks.wait()).await.is_ok() {
            return 0;
        }
        let at_work = self.inner.driving.runs().len();
        drain.cut.cancel();
        if timeout(LAST_TOUCHES, tasks.wait()).await.is_err() {
            tracing::warn!("something of the runs is still at work; it is left behind");
        }
        at_work
    }

    /// Writes down what has happened by now, before the run is given up; behind what somebody else was quicker to write.
    pub(super) async fn lay_down(&self, journal: &mut Journal) -> Result<(), DriveError> {
        while journal.commit().await? == Progress::CaughtUp {}
        Ok(())
    }

    /// Gives the ownership of a run up, so that whoever asks for it next has it.
    pub(super) async fn give_up(&self, run: &RunId) {
        let store = &self.inner.ports.store;
        if let Err(error) = store.runs.renew(&store.node, std::slice::from_ref(run), Duration::ZERO).await {
            tracing::warn!(%run, %error, "a run that was laid down is free only when its lease has run out");
        }
    }
}
