//! Task polling: polls MCP tasks at the interval each server requested. A slow server delays only its own tasks,
//! because polls run concurrently.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;
use toolgate_core::id::RunId;
use toolgate_core::run::Status;
use toolgate_ports::{PendingKind, RunFilter};
use toolgate_runner::{PollOutcome, RunnerError};

use crate::operator::every_run;
use crate::service::Service;

/// How many runs are polled at once, not counting those with slow servers.
const AT_ONCE: usize = 16;
/// How many runs are polled at once in all.
const MAX_TASKS: usize = 512;
/// A poll that takes longer is slow.
const SLOW: Duration = Duration::from_secs(1);
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// The longest sleep: a task may begin meanwhile.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The pause before a run is polled again whose servers did not answer.
const LATER: Duration = Duration::from_secs(30);

pub(super) async fn run(service: Service) {
    let mut rounds = PollSchedule::default();
    loop {
        match waiting(&service).await {
            Ok(runs) => rounds.look_at(runs),
            Err(error) => tracing::warn!(%error, "failed to list runs with MCP tasks"),
        }
        let looked = Instant::now();
        loop {
            rounds.ask(&service);
            let next = rounds.next().map(|next| next.saturating_duration_since(looked));
            let pause = next.map_or(MAX_PAUSE, |next| next.clamp(MIN_PAUSE, MAX_PAUSE));
            tokio::select! {
                Some((run, again)) = rounds.under_way.next() => rounds.answered(run, again),
                () = tokio::time::sleep_until(looked + pause) => break,
            }
        }
    }
}

/// The polls that are due, and those in progress.
#[derive(Default)]
struct PollSchedule {
    /// When each run that was polled is due again. An unknown run is due at once; after a restart that is each of them.
    due: BTreeMap<RunId, Instant>,
    /// Runs to poll as soon as there is room.
    next: VecDeque<RunId>,
    /// When each poll in progress began.
    since: BTreeMap<RunId, Instant>,
    under_way: FuturesUnordered<BoxFuture<'static, (RunId, Option<Instant>)>>,
}

impl PollSchedule {
    /// Schedules all runs that wait for tasks.
    fn look_at(&mut self, runs: Vec<RunId>) {
        let now = Instant::now();
        let known = std::mem::take(&mut self.due);
        self.next.clear();
        for run in runs {
            if self.since.contains_key(&run) {
                continue;
            }
            match known.get(&run).filter(|later| **later > now) {
                Some(later) => {
                    self.due.insert(run, *later);
                }
                None => self.next.push_back(run),
            }
        }
    }

    /// Starts polls, as far as there is room.
    fn ask(&mut self, service: &Service) {
        let now = Instant::now();
        let quick = self.since.values().filter(|since| now.duration_since(**since) < SLOW).count();
        let room = AT_ONCE.saturating_sub(quick).min(MAX_TASKS.saturating_sub(self.since.len()));
        for run in self.next.drain(..room.min(self.next.len())) {
            self.since.insert(run.clone(), now);
            self.under_way.push(Box::pin(poll(service.clone(), run)));
        }
    }

    /// When the next poll is due, if any is scheduled.
    fn next(&self) -> Option<Instant> {
        let now = Instant::now();
        let slow = self.since.values().map(|since| *since + SLOW);
        let room = slow.filter(|slow| *slow > now && !self.next.is_empty()).min();
        self.due.values().min().copied().into_iter().chain(room).min()
    }

    fn answered(&mut self, run: RunId, again: Option<Instant>) {
        self.since.remove(&run);
        if let Some(again) = again {
            self.due.insert(run, again);
        }
    }
}

/// Polls the servers of a run, and returns when to poll it again.
async fn poll(service: Service, run: RunId) -> (RunId, Option<Instant>) {
    let again = match service.runner().poll_tasks(&run).await {
        Ok(PollOutcome::StillWaits { again_in, .. }) => Some(Instant::now() + again_in),
        Ok(PollOutcome::GoesOn(_) | PollOutcome::NoTasks(_)) | Err(RunnerError::NoSuchRun(_) | RunnerError::Closed) => {
            None
        }
        Err(error) => {
            service.runner().report_undriven(&run, &error).await;
            Some(Instant::now() + LATER)
        }
    };
    (run, again)
}

/// The runs that wait for tasks.
async fn waiting(service: &Service) -> Result<Vec<RunId>, RunnerError> {
    let filter =
        RunFilter { statuses: vec![Status::Pending], pending_kind: Some(PendingKind::Task), ..RunFilter::default() };
    Ok(every_run(&service.runner(), filter).await?.into_iter().map(|row| row.id).collect())
}
