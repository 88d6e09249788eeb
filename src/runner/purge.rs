//! Deleting what a run holds. Runs that are not over cannot be deleted: somebody may be at work on them.

use super::{AgentRunner, RunnerError};
use crate::core::id::RunId;
use crate::driver::DriveError;
use crate::ports::{Purged, RunFilter, RunRow};

impl AgentRunner {
    /// Deletes the journal of a run that is over, for good, and every blob that only it used. That it was there, whose it
    /// was, how it ended and when stays known. Forks of it have their own copy and keep it. Deleting twice is deleting
    /// once.
    pub async fn purge(&self, run: &RunId) -> Result<(), RunnerError> {
        let row = self.row(run).await?.ok_or_else(|| RunnerError::NoSuchRun(run.clone()))?;
        if row.purged_at.is_none() && !row.status.is_ended() {
            return Err(RunnerError::NotOver { run: run.clone(), status: row.status });
        }
        if self.inner.driving.driven(run).is_some() {
            return Err(RunnerError::StillDriven(run.clone()));
        }
        let (runner, run) = (self.clone(), run.clone());
        self.to_completion(async move { runner.purge_and_forget(&run, row.version).await }).await?
    }

    /// Deletes the journal, and then the blobs that only it named.
    async fn purge_and_forget(&self, run: &RunId, version: u64) -> Result<(), RunnerError> {
        let ports = &self.inner.ports;
        let purged = ports.store.runs.purge(run, version, ports.clock.now()).await.map_err(DriveError::from)?;
        match (purged, &ports.blobs) {
            // Nothing follows an ending, so the journal is as long as it was.
            (Purged::No, _) => Err(RunnerError::NoSuchRun(run.clone())),
            (Purged::Since(_), None) => Ok(()),
            (Purged::Since(_), Some(blobs)) => Ok(blobs.forget(run).await.map_err(DriveError::from)?),
        }
    }

    /// The index row of a run, also of one that was deleted.
    pub async fn row(&self, run: &RunId) -> Result<Option<RunRow>, RunnerError> {
        let filter = RunFilter { run: Some(run.clone()), purged: true, limit: 1, ..RunFilter::default() };
        Ok(self.list(&filter).await?.into_iter().next())
    }
}
