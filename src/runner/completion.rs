//! Cancellation safety: what an operation writes and what follows from it are one unit.
//!
//! A future may be dropped wherever it waits: a client closes its connection, a caller has a timeout. Between the append of
//! a fact and what the fact intends (driving the run, waking its driver, telling its watchers) that would leave a run that
//! counts as running while no task drives it, until its lease ends. Such a unit runs in a task that the runner owns, and the
//! caller only waits for it.

use std::panic::resume_unwind;

use tracing::Instrument as _;

use super::{AgentRunner, RunnerError};

impl AgentRunner {
    /// Runs a unit of work to its end in a task of this runner, also when the caller stops waiting. [`close`](Self::close) and
    /// [`drain`](Self::drain) wait for it. A panic in the unit is one of the caller.
    pub(super) async fn to_completion<T: Send + 'static>(
        &self,
        unit: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RunnerError> {
        match self.inner.tasks.spawn(unit.in_current_span()).await {
            Ok(done) => Ok(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Only a runtime that shuts down aborts it.
                Err(_) => Err(RunnerError::Closed),
            },
        }
    }
}
