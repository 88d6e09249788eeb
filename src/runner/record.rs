//! Recording of input for a run without executing it.

use toolgate_core::id::RunId;
use toolgate_core::run::{Input, Resume, Run};
use toolgate_driver::{Journal, Progress};

use super::{AgentRunner, Report, RunnerError};

impl AgentRunner {
    /// Records an input and leaves the execution to others: to the process that executes the run now, or to the
    /// recovery of orphaned runs. The input is validated and bound like the input of [`resume`](AgentRunner::resume).
    pub async fn record(&self, run: &RunId, resume: Resume) -> Result<Report, RunnerError> {
        let written = self.append_input(run, &Input::Resume(resume), |_| true).await?;
        let journal = written.ok_or_else(|| RunnerError::Lost(run.clone()))?;
        Ok(Report::new(run.clone(), journal.run()))
    }

    /// Records an input without executing the run, validated against the journal that it is appended to. Returns `None`
    /// and writes nothing if `meant` rejects the run.
    pub(super) async fn append_input(
        &self,
        run: &RunId,
        input: &Input,
        meant: fn(&Run) -> bool,
    ) -> Result<Option<Journal>, RunnerError> {
        loop {
            let journal = self.open_unless_over(run).await?.0;
            let (current, late) = journal.at_now()?;
            let given = self.validate_input(&journal, &current, input).await?;
            if !meant(journal.run()) {
                return Ok(None);
            }
            if given.events.is_empty() {
                return Ok(Some(journal));
            }
            self.store_blobs(run, given.blobs).await?;
            let facts = late.into_iter().chain(given.events).collect();
            let (journal, progress) = self.write_beside(journal, facts).await?;
            if progress == Progress::Committed {
                return Ok(Some(journal));
            }
        }
    }
}
