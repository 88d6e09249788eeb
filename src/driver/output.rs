//! Step: validate the final answer.

use toolgate_core::run::Event;

use super::interrupt::StepOutcome;
use super::{DriveError, Driver, Journal};

impl Driver<'_> {
    pub(super) async fn validate_output(&self, journal: &mut Journal, answer: &str) -> Result<(), DriveError> {
        let run = journal.run();
        let checked = self.ports.outputs.check(&run.started().spec, answer, run.budget());
        match self.unless_ended(journal, checked).await {
            StepOutcome::Done(verdict) => journal.stage(Event::OutputValidated { verdict }),
            StepOutcome::Interrupted => journal.catch_up().await,
        }
    }
}
