//! Step: check the final answer.

use super::{DriveError, Driver, Journal};
use crate::core::run::Event;

impl Driver<'_> {
    pub(super) async fn validate_output(&self, journal: &mut Journal, answer: &str) -> Result<(), DriveError> {
        let run = journal.run();
        let verdict = self.ports.outputs.check(&run.started().spec, answer, run.budget()).await;
        journal.stage(Event::OutputValidated { verdict })
    }
}
