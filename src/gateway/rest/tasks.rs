//! Calls that servers go on with by themselves: each server is asked when it wanted to be.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::Instant;

use super::{PAGE, pause};
use crate::core::id::RunId;
use crate::core::run::Status;
use crate::gateway::state::Gateway;
use crate::ports::{Owing, RunFilter};
use crate::runner::{Polled, RunnerError};

/// How many runs are asked about at once.
const AT_ONCE: usize = 16;
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest sleep: a task may begin meanwhile.
const LONGEST: Duration = Duration::from_secs(2);
/// When a run is looked at again whose servers could not be asked.
const LATER: Duration = Duration::from_secs(30);

pub(super) async fn look_after(gateway: Gateway) {
    // A run that nothing is known of is asked about at once; after a restart that is each of them.
    let mut due: BTreeMap<RunId, Instant> = BTreeMap::new();
    loop {
        match waiting(&gateway).await {
            Ok(runs) => due = ask(&gateway, runs, &due).await,
            Err(error) => tracing::warn!(%error, "runs that wait for tasks of servers cannot be looked for"),
        }
        let next = due.values().min().map(|next| next.saturating_duration_since(Instant::now()));
        tokio::time::sleep(pause(next, SHORTEST, LONGEST)).await;
    }
}

/// Asks about those that are due, and says when each is to be asked about next.
async fn ask(gateway: &Gateway, runs: Vec<RunId>, due: &BTreeMap<RunId, Instant>) -> BTreeMap<RunId, Instant> {
    let now = Instant::now();
    let asked = futures::stream::iter(runs).map(|run| async move {
        match due.get(&run) {
            Some(later) if *later > now => Some((run, *later)),
            Some(_) | None => poll(gateway, run).await,
        }
    });
    asked.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

async fn poll(gateway: &Gateway, run: RunId) -> Option<(RunId, Instant)> {
    match gateway.runner().poll_tasks(&run).await {
        Ok(Polled::StillWaits { again_in, .. }) => Some((run, Instant::now() + again_in)),
        Ok(Polled::GoesOn(_) | Polled::NoTasks(_)) | Err(RunnerError::NoSuchRun(_) | RunnerError::Closed) => None,
        Err(error) => {
            tracing::warn!(%run, %error, "the tasks of a run cannot be asked about here");
            Some((run, Instant::now() + LATER))
        }
    }
}

/// The runs that wait for tasks.
async fn waiting(gateway: &Gateway) -> Result<Vec<RunId>, RunnerError> {
    let mut filter =
        RunFilter { status: Some(Status::Pending), owing: Some(Owing::Task), limit: PAGE, ..RunFilter::default() };
    let mut runs: Vec<RunId> = Vec::new();
    loop {
        let page = gateway.runner().list(&filter).await?;
        let is_last = page.len() < PAGE;
        runs.extend(page.into_iter().map(|row| row.id));
        filter.before = runs.last().cloned();
        if is_last {
            return Ok(runs);
        }
    }
}
