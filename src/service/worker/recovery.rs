//! Recovery of orphaned runs, whose process is gone: by a server at startup, and soon after another process released
//! them or its leases expired; by an operator in one pass.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, Stream};
use toolgate_runner::{AgentRunner, Execution, RunnerError};

use crate::operator::Operator;
use crate::service::Service;

/// How long an unclaimed run waits at most: a process that drains releases its runs before their leases expire.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// When so many runs wait for admission here, recovery pauses, so that other processes can claim orphaned runs.
const ADMISSION_QUEUE_LIMIT: usize = 64;

pub(super) async fn run(service: Service) {
    loop {
        let mut pass = pin!(recover(service.runner()));
        while let Some(claimed) = pass.next().await {
            match claimed {
                Ok(claimed) => tracing::info!(runs = claimed.len(), "orphaned runs resumed"),
                Err(error) => tracing::warn!(%error, "failed to list orphaned runs"),
            }
        }
        tokio::time::sleep(service.runner().lease().min(MAX_PAUSE)).await;
    }
}

/// One pass of recovery: claims orphaned runs batch by batch, until none is left or enough wait for admission here.
fn recover(runner: AgentRunner) -> impl Stream<Item = Result<Vec<Execution>, RunnerError>> {
    stream::try_unfold(runner, |runner| async move {
        if runner.activity().waiting >= ADMISSION_QUEUE_LIMIT {
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
