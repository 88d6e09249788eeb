//! Blocked runs: runs that this process cannot execute, because its configuration lacks their agent or one of their
//! servers.
//!
//! A blocked run stays unfinished, because another process may have the missing configuration, and this process may get
//! it back with its next reload. It is reported once, counted until it moves or ends, shown as blocked, and can be
//! cancelled. Its deadline still applies.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::RunId;
use toolgate_core::run::{Ending, Run};
use toolgate_driver::DriveError;
use toolgate_ports::RunPosition;

use super::resume_input::require_servers;
use super::{AgentRunner, RunnerError};

/// The blocked runs that were reported, each with the length of its journal.
#[derive(Default)]
pub(super) struct BlockedRuns {
    reported: Mutex<BTreeMap<RunId, u64>>,
}

impl BlockedRuns {
    fn contains(&self, run: &RunId) -> bool {
        self.lock().contains_key(run)
    }

    /// Marks a run as reported. Returns whether it was not reported before.
    fn add(&self, run: &RunId, version: u64) -> bool {
        self.lock().insert(run.clone(), version).is_none()
    }

    /// Removes a run that is active again or ended.
    pub(super) fn forget(&self, run: &RunId) {
        self.lock().remove(run);
    }

    /// Removes those of the `known` runs whose journals are at other positions now, or are gone.
    fn forget_moved(&self, known: &BTreeMap<RunId, u64>, positions: &[RunPosition]) {
        let lengths: BTreeMap<&RunId, u64> =
            positions.iter().filter(|at| !at.is_purged).map(|at| (&at.run, at.version)).collect();
        let mut reported = self.lock();
        for (run, version) in known {
            if lengths.get(run) != Some(version) {
                reported.remove(run);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, u64>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
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
        require_servers(id, spec, &agent, &self.inner.injections.servers_of(id)).err()
    }

    /// The number of blocked runs that this process found and that neither moved nor ended since.
    pub fn blocked_runs(&self) -> usize {
        self.inner.blocked.lock().len()
    }

    /// Logs that this process cannot execute a run. If the configuration of the run is missing, it warns the first time
    /// only; other errors warn each time. Returns whether the run is newly blocked.
    pub async fn report_undriven(&self, run: &RunId, error: &RunnerError) -> bool {
        if !error.is_blocking() {
            tracing::warn!(%run, %error, "failed to resume run");
            return false;
        }
        // Not ended: another process may have the configuration (decision 0021).
        if self.inner.blocked.contains(run) {
            tracing::debug!(%run, %error, "run still blocked");
            return false;
        }
        let is_new = match self.blocked_at(run).await {
            Ok(version) => version.is_some_and(|version| self.inner.blocked.add(run, version)),
            Err(error) => {
                tracing::warn!(%run, %error, "failed to read blocked run");
                false
            }
        };
        if is_new {
            let remedy = format!("configure it again, or end the run with `toolgate runs cancel {run}`");
            tracing::warn!(%run, %error, %remedy, "run blocked: this process lacks its configuration");
        }
        is_new
    }

    /// The length of a blocked run's journal; `None` if the run ended meanwhile.
    async fn blocked_at(&self, run: &RunId) -> Result<Option<u64>, RunnerError> {
        let (journal, _) = self.open(run).await?;
        Ok(self.blocked(run, journal.run()).map(|_| journal.committed()))
    }

    /// Stops counting blocked runs that another process resumed or that ended.
    pub(super) async fn forget_moved_runs(&self) -> Result<(), RunnerError> {
        let known = self.inner.blocked.lock().clone();
        if known.is_empty() {
            return Ok(());
        }
        let runs: Vec<RunId> = known.keys().cloned().collect();
        let positions = self.inner.ports.store.runs.positions(&runs).await.map_err(DriveError::from)?;
        self.inner.blocked.forget_moved(&known, &positions);
        Ok(())
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
        let event = journal.run().ending_event(Ending::Failed { error });
        self.write_beside(journal, vec![event]).await?;
        Ok(())
    }
}

impl RunnerError {
    /// Whether the error means that the configuration of this process lacks something that a run needs.
    pub(super) fn is_blocking(&self) -> bool {
        matches!(self, Self::NoSuchAgent { .. } | Self::ServerMissing { .. } | Self::InjectionMissing { .. })
    }
}
