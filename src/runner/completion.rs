//! Cancellation safety: a write and its consequences complete as one unit.
//!
//! A future may be dropped at any await point: a client closes its connection, a caller has a timeout. If that happens
//! between the append of an event and its consequences (execute the run, wake its driver, notify its watchers), the run
//! counts as running while no task executes it, until its lease expires. Such a unit therefore runs in a task that the
//! runner owns, and the caller only waits for it.

use std::panic::resume_unwind;

use tracing::Instrument as _;

use super::{AgentRunner, RunnerError};

impl AgentRunner {
    /// Runs a unit of work to completion in a task of this runner, even if the caller stops waiting.
    /// [`close`](Self::close) and [`drain`](Self::drain) wait for it. A panic in the unit propagates to the caller.
    pub(super) async fn to_completion<T: Send + 'static>(
        &self,
        unit: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RunnerError> {
        match self.inner.tasks.spawn(unit.in_current_span()).await {
            Ok(done) => Ok(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Only the shutdown of the runtime aborts the task.
                Err(_) => Err(RunnerError::Closed),
            },
        }
    }
}
