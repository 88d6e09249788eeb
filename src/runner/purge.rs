//! Deletion of a run's content. Only ended runs can be deleted, because an unfinished run may be active.

use toolgate_core::id::RunId;
use toolgate_driver::DriveError;
use toolgate_ports::{Purged, RunFilter, RunRow};

use super::{AgentRunner, RunnerError};

impl AgentRunner {
    /// Permanently deletes the journal of an ended run and every blob that only this run used. The index row stays: it
    /// records that the run existed, its tenant, its ending and its times. Forks have their own copy and keep it.
    /// Deleting twice changes nothing.
    pub async fn purge(&self, run: &RunId) -> Result<(), RunnerError> {
        let row = self.row(run).await?.ok_or_else(|| RunnerError::NoSuchRun(run.clone()))?;
        if row.purged_at.is_none() && !row.status.is_ended() {
            return Err(RunnerError::NotOver { run: run.clone(), status: row.status });
        }
        if self.inner.active_runs.driven(run).is_some() {
            return Err(RunnerError::StillDriven(run.clone()));
        }
        let (runner, run) = (self.clone(), run.clone());
        self.to_completion(async move { runner.purge_and_forget(&run, row.version).await }).await?
    }

    /// Deletes the journal, then the blobs that only it referred to.
    async fn purge_and_forget(&self, run: &RunId, version: u64) -> Result<(), RunnerError> {
        let ports = &self.inner.ports;
        let purged = ports.store.runs.purge(run, version, ports.clock.now()).await.map_err(DriveError::from)?;
        ports.store.segments.forget(run);
        if let Purged::Since(_) = purged {
            ports.sinks.iter().for_each(|sink| sink.purged(run));
        }
        match (purged, &ports.blobs) {
            // No event follows an ending, so the length of the journal is unchanged.
            (Purged::No, _) => Err(RunnerError::NoSuchRun(run.clone())),
            (Purged::Since(_), None) => Ok(()),
            (Purged::Since(_), Some(blobs)) => Ok(blobs.forget(run).await.map_err(DriveError::from)?),
        }
    }

    /// The index row of a run, including deleted runs.
    pub async fn row(&self, run: &RunId) -> Result<Option<RunRow>, RunnerError> {
        let filter = RunFilter { run: Some(run.clone()), purged: true, limit: 1, ..RunFilter::default() };
        Ok(self.list(&filter).await?.into_iter().next())
    }
}
