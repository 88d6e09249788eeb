//! Background worker: recovers orphaned runs, expires overdue ones, polls MCP tasks, and sends webhooks. It needs no
//! surface, so a process that serves no HTTP can run it as well.
//!
//! It finds all of them in the store's index, so that a pending run costs one row; one that waits for a task also costs
//! a note of its next poll. Several processes may do this work on one store: each step is idempotent.

mod expiry;
mod recovery;
mod task_poller;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::service::Service;

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
        tasks.spawn(until(service.stopping().clone(), recovery::run(service.clone())));
        tasks.spawn(until(service.stopping().clone(), expiry::run(service.clone())));
        tasks.spawn(until(service.stopping().clone(), task_poller::run(service.clone())));
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
