//! A person who looks on at a run in this process, and is asked there what servers want to know.

use super::AgentRunner;
use crate::core::id::{CallId, RunId};
use crate::driver::Hint;

/// A person who looks on at a run that is driven here. Until it is dropped, calls whose servers ask are held open without a
/// limit of time.
#[derive(Debug)]
pub struct Attendance {
    hint: Hint,
}

impl AgentRunner {
    /// A person looks on at the execution of a run that is under way here, and is asked. `None` when it is not driven here.
    pub fn attend(&self, run: &RunId) -> Option<Attendance> {
        let hint = self.inner.driving.driven(run)?.hint;
        hint.attend();
        Some(Attendance { hint })
    }

    /// A call that is held open for an answer to its server is not to be held any longer: it is cancelled, and its run waits
    /// for the answer. Does nothing for any other call.
    pub fn release_held(&self, run: &RunId, call: &CallId) {
        if let Some(driven) = self.inner.driving.driven(run) {
            driven.hint.release(call.clone());
        }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.hint.leave();
    }
}
