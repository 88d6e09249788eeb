//! Blocked runs: runs that this process cannot execute, because its configuration lacks their agent or one of their
//! servers.
//!
//! A blocked run stays unfinished, because another process may have the missing configuration, and this process may get
//! it back with its next reload. It is reported once, shown as blocked, and can be cancelled. Its deadline still
//! applies.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::resume_input::require_servers;
use super::{AgentRunner, RunnerError};
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::RunId;
use crate::core::run::{Ending, Event, Run};

/// The blocked runs that were reported.
#[derive(Default)]
pub(super) struct BlockedRuns {
    reported: Mutex<BTreeSet<RunId>>,
}

impl BlockedRuns {
    /// Whether the run was not reported before. Marks it as reported.
    fn is_new(&self, run: &RunId) -> bool {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone())
    }

    /// Removes a run that is active again or ended.
    pub(super) fn forget(&self, run: &RunId) {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }
}

impl AgentRunner {
    /// Why this process cannot execute an unfinished run; `None` if it can.
    pub fn blocked(&self, id: &RunId, run: &Run) -> Option<RunnerError> {
        if run.ending().is_some() {
            return None;
        }
        let spec = &run.started().spec;
        let agent = match self.agent_of(spec) {
            Ok(agent) => agent,
            Err(error) => return Some(error),
        };
        require_servers(id, spec, &agent, &self.inner.injections.of(id)).err()
    }

    /// Logs that this process cannot execute a run. If the configuration of the run is missing, it warns the first time
    /// only; other errors warn each time. Returns whether the run is newly blocked.
    pub fn report_undriven(&self, run: &RunId, error: &RunnerError) -> bool {
        let is_new = error.is_blocking() && self.inner.blocked.is_new(run);
        if is_new {
            let remedy = format!("configure it again, or end the run with `toolgate runs cancel {run}`");
            tracing::warn!(%run, %error, %remedy, "run blocked: this process lacks its configuration");
        } else if error.is_blocking() {
            tracing::debug!(%run, %error, "run still blocked");
        } else {
            tracing::warn!(%run, %error, "failed to resume run");
        }
        is_new
    }

    /// Ends a blocked run that is past its deadline, because no driver does it.
    pub(super) async fn end_blocked_if_late(&self, run: &RunId) -> Result<(), RunnerError> {
        let (journal, _) = self.open_unless_over(run).await?;
        let is_late = journal.deadline().is_some_and(|deadline| deadline <= self.now());
        if !is_late || journal.run().ending().is_some() {
            return Ok(());
        }
        let seconds = journal.run().started().spec.limits.deadline_s.unwrap_or_default();
        let message = format!("the run did not end within its deadline of {seconds} s (limits.deadline_s)");
        let error = Failure::new(ErrorCode::DeadlineExceeded, message);
        // If another process was faster, that process has the missing configuration.
        self.write_beside(journal, vec![Event::Ended { ending: Ending::Failed { error } }]).await?;
        Ok(())
    }
}

impl RunnerError {
    /// Whether the error means that the configuration of this process lacks something that a run needs.
    pub(super) fn is_blocking(&self) -> bool {
        matches!(self, Self::NoSuchAgent { .. } | Self::ServerMissing { .. } | Self::InjectionMissing { .. })
    }
}
