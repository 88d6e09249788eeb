//! Background worker: recovers orphaned runs, expires overdue ones, polls MCP tasks, sends webhooks, and deletes ended runs
//! after their retention, and files that have expired. It needs no surface, so a process that serves no HTTP can run it as well.
//!
//! It finds all of them in the store's index, so that a pending run costs one row; one that waits for a task also costs
//! a note of its next poll. Several processes may do this work on one store: each step is idempotent.

mod expiry;
mod files;
mod retention;
mod task_poller;

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, Stream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_runner::{AgentRunner, Execution, RunnerError};

use crate::operator::Operator;
use crate::service::Service;

/// The worker's tasks, which run until the service stops. Dropping this aborts them.
pub struct Worker {
    tasks: JoinSet<()>,
}

impl Worker {
    /// Starts the worker. Requires an async runtime.
    ///
    /// # Errors
    /// A text that says why no webhooks can be sent.
    pub fn begin(service: &Service) -> Result<Self, String> {
        let mut tasks = JoinSet::new();
        if let Some(dispatcher) = service.dispatcher()? {
            // The task ends by itself, when the deliveries in progress have ended.
            tasks.spawn(dispatcher.run(service.stopping().clone()));
        }
        tasks.spawn(until(service.stopping().clone(), run_recovery(service.clone())));
        tasks.spawn(until(service.stopping().clone(), expiry::run(service.clone())));
        tasks.spawn(until(service.stopping().clone(), task_poller::run(service.clone())));
        if let Some(files) = service.file_config() {
            tasks.spawn(until(service.stopping().clone(), files::run(service.clone(), files.clone())));
        }
        let retention = service.retention_rules();
        if !retention.is_empty() {
            tasks.spawn(until(service.stopping().clone(), retention::run(service.clone(), retention)));
        }
        Ok(Self { tasks })
    }

    /// Waits for the tasks to end, which they do when the service stops.
    pub async fn end(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn until(stopping: CancellationToken, work: impl Future<Output = ()>) {
    tokio::select! {
        () = stopping.cancelled() => {}
        () = work => {}
    }
}

/// How long an unclaimed run waits at most: a process that drains releases its runs before their leases expire.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// When so many runs wait for admission here, recovery pauses, so that other processes can claim orphaned runs.
const ADMISSION_QUEUE_LIMIT: usize = 64;

/// Recovers orphaned runs again and again.
async fn run_recovery(service: Service) {
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
