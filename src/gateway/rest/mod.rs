//! What a server does on its own account: it looks after runs that nobody asks about.
//!
//! Those left behind by a process that died are taken up, those of which something runs out are told so, and servers are
//! asked about tasks that are due. All of it is found by the store's index, so a run that waits costs a row; one that waits
//! for a task also costs the note when its server is to be asked. Several processes may do it on one store: doing any of
//! it twice is doing it once.

mod due;
mod left_behind;
mod tasks;

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::state::Gateway;

/// How many rows of the index are read at a time.
const PAGE: usize = 500;

/// The tasks that look after runs, until the gateway stops. They end at once when this is dropped.
pub struct Rest {
    tasks: JoinSet<()>,
}

impl Rest {
    /// Begins. To be called within an async runtime.
    ///
    /// # Errors
    /// In words, why no webhooks can be sent.
    pub fn begin(gateway: &Gateway) -> Result<Self, String> {
        let mut tasks = JoinSet::new();
        if let Some(dispatcher) = gateway.dispatcher()? {
            // It ends by itself, when what is on its way has arrived.
            tasks.spawn(dispatcher.run(gateway.stopping().clone()));
        }
        tasks.spawn(until(gateway.stopping().clone(), left_behind::look_after(gateway.clone())));
        tasks.spawn(until(gateway.stopping().clone(), due::look_after(gateway.clone())));
        tasks.spawn(until(gateway.stopping().clone(), tasks::look_after(gateway.clone())));
        Ok(Self { tasks })
    }

    /// Waits for them to end, which they do when the gateway stops.
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

/// Between `shortest` and `longest`.
fn pause(wanted: Option<Duration>, shortest: Duration, longest: Duration) -> Duration {
    wanted.map_or(longest, |wanted| wanted.clamp(shortest, longest))
}
