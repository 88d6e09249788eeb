//! What is given to a run by somebody who does not drive it.

use super::{AgentRunner, Report, RunnerError};
use crate::core::id::RunId;
use crate::core::run::{Input, Resume, Run};
use crate::driver::{Journal, Progress};

impl AgentRunner {
    /// Gives a run what it is owed and leaves driving it to others: to the process that drives it now, or else to whoever
    /// recovers runs that nobody drives. Checked and bound like everything that is given to
    /// [`resume`](AgentRunner::resume).
    pub async fn record(&self, run: &RunId, resume: Resume) -> Result<Report, RunnerError> {
        let written = self.hand_in(run, &Input::Resume(resume), |_| true).await?;
        let journal = written.ok_or_else(|| RunnerError::Lost(run.clone()))?;
        Ok(Report::of(run.clone(), journal.run()))
    }

    /// Writes an input without driving the run, checked against the very journal that takes it. `None`, and nothing is
    /// written, if the run is not one that is `meant`.
    pub(super) async fn hand_in(
        &self,
        run: &RunId,
        input: &Input,
        meant: fn(&Run) -> bool,
    ) -> Result<Option<Journal>, RunnerError> {
        loop {
            let journal = self.open_unless_over(run).await?.0;
            let (by_now, late) = journal.by_now()?;
            let given = self.examined(&journal, &by_now, input).await?;
            if !meant(journal.run()) {
                return Ok(None);
            }
            if given.events.is_empty() {
                return Ok(Some(journal));
            }
            self.keep(run, given.wholes).await?;
            let facts = late.into_iter().chain(given.events).collect();
            let (journal, progress) = self.write_beside(journal, facts).await?;
            if progress == Progress::Committed {
                return Ok(Some(journal));
            }
        }
    }
}
