//! Answers that are written down by somebody who does not drive the run.

use super::given::grants;
use super::{AgentRunner, Report, RunnerError};
use crate::core::id::RunId;
use crate::core::run::{Input, Resume, Status};
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
            // Whoever drives it here tells the watchers, in order; a driver that is about to rest looks no more.
            let is_running = journal.run().status() == Status::Running;
            let driven_here = self.inner.driving.driven(run).filter(|_| is_running);
            if driven_here.is_some() {
                journal.mute();
            }
            journal.stage_all(events)?;
            if journal.post().await? == Progress::CaughtUp {
                continue;
            }
            self.remember(&grants).await;
            if let Some(driven) = driven_here {
                driven.hint.wake();
            }
            return Ok(Report::of(run.clone(), journal.run()));
        }
    }
}
