//! Answers that are written down by somebody who does not drive the run.

use super::given::grants;
use super::{AgentRunner, Report, RunnerError};
use crate::core::id::RunId;
use crate::core::run::{Input, Resume};
use crate::driver::Progress;

impl AgentRunner {
    /// Gives a run what it is owed and leaves driving it to others: to the process that drives it now, or else to whoever
    /// recovers runs that nobody drives. Checked and bound like everything that is given to
    /// [`resume`](AgentRunner::resume).
    pub async fn record(&self, run: &RunId, resume: Resume) -> Result<Report, RunnerError> {
        loop {
            let mut journal = self.open_in_time(run).await?.0;
            self.check(&journal, &resume).await?;
            let (input, wholes) = self.fit(&journal, &Input::Resume(resume.clone()));
            let events = self.received(run, journal.run(), &input)?;
            let grants = grants(&journal, &events, self.inner.ports.clock.now());
            self.keep(run, wholes).await?;
            if self.write_beside(&mut journal, events).await? == Progress::CaughtUp {
                continue;
            }
            self.remember(&grants).await;
            return Ok(Report::of(run.clone(), journal.run()));
        }
    }
}
