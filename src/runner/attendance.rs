//! Attendance: a user who watches a run in this process and can answer elicitations at once.

use toolgate_core::id::{CallId, RunId};
use toolgate_driver::WakeSignal;

use super::AgentRunner;

/// A user who attends a run that this process executes. Until the attendance is dropped, calls with an open elicitation
/// stay open without a time limit.
#[derive(Debug)]
pub struct Attendance {
    wake: WakeSignal,
}

impl AgentRunner {
    /// Marks the execution of a run in this process as attended. `None` if this process does not execute the run.
    pub fn attend(&self, run: &RunId) -> Option<Attendance> {
        let wake = self.inner.active_runs.driven(run)?.wake;
        wake.attend();
        Some(Attendance { wake })
    }

    /// Stops holding a call open for an elicitation: the call is cancelled, and its run waits for the answer. Has no
    /// effect on other calls.
    pub fn release_held(&self, run: &RunId, call: &CallId) {
        if let Some(driven) = self.inner.active_runs.driven(run) {
            driven.wake.release(call.clone());
        }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.wake.leave();
    }
}
