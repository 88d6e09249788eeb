//! Recovery of orphaned runs, whose process is gone.

use futures::stream::{self, Stream};
use toolgate_runner::{AgentRunner, Execution, RunnerError};

use super::operator::Operator;

/// When so many runs wait for admission here, recovery pauses, so that other processes can claim orphaned runs.
const ENOUGH_WAIT: usize = 64;

/// One pass of recovery: claims orphaned runs batch by batch, until none is left or enough wait for admission here.
pub(crate) fn recover(runner: AgentRunner) -> impl Stream<Item = Result<Vec<Execution>, RunnerError>> {
    stream::try_unfold(runner, |runner| async move {
        if runner.activity().waiting >= ENOUGH_WAIT {
            return Ok(None);
        }
        let claimed = runner.recover().await?;
        Ok((!claimed.is_empty()).then_some((claimed, runner)))
    })
}

impl Operator {
    /// One pass of recovery: the executions of the orphaned runs, batch by batch. Each next batch is claimed when it is
    /// pulled.
    pub fn recover(&self) -> impl Stream<Item = Result<Vec<Execution>, RunnerError>> + use<> {
        recover(self.runner.clone())
    }
}
