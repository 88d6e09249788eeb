//! Deadline sweeper: expires overdue runs, which have pending items without an answer in time or are past their own
//! deadline. The deadline is enforced without this; the sweep only makes the model see it soon.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use toolgate_core::id::RunId;
use toolgate_core::run::Status;
use toolgate_ports::{RunFilter, RunRow};
use toolgate_runner::RunnerError;

use crate::operator::every_run;
use crate::service::Service;

/// The longest sleep: a new item may expire before any that is known.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// A pause that lets items with the same deadline expire together.
const MIN_PAUSE: Duration = Duration::from_millis(20);
/// How long the sweeper skips a run that could not be resumed.
const FAILED_RUN_PAUSE: Duration = Duration::from_secs(60);

pub(super) async fn run(service: Service) {
    let mut failed = BTreeMap::new();
    loop {
        let next = match sweep(&service, &mut failed).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "failed to list overdue runs");
                None
            }
        };
        tokio::time::sleep(next.map_or(MAX_PAUSE, |next| next.clamp(MIN_PAUSE, MAX_PAUSE))).await;
    }
}

/// Expires what is overdue, and returns the time until the next deadline.
async fn sweep(service: &Service, failed: &mut BTreeMap<RunId, Timestamp>) -> Result<Option<Duration>, RunnerError> {
    let now = Timestamp::now();
    failed.retain(|_, until| *until > now);
    let mut next: Option<Duration> = None;
    for row in due_soon(service, now).await? {
        let Some(due) = row.pending_counts.due_at else { continue };
        if due > now {
            let later = Duration::try_from(due.duration_since(now)).unwrap_or_default();
            next = Some(next.map_or(later, |next| next.min(later)));
        } else if !failed.contains_key(&row.id) && !expire(service, &row.id).await {
            failed.insert(row.id, now + FAILED_RUN_PAUSE);
        }
    }
    Ok(next)
}

async fn due_soon(service: &Service, now: Timestamp) -> Result<Vec<RunRow>, RunnerError> {
    let soon = Some(now + MAX_PAUSE);
    let filter = RunFilter { statuses: vec![Status::Pending], due_by: soon, ..RunFilter::default() };
    every_run(&service.runner(), filter).await
}

/// Whether the run was resumed, or has no overdue items any more.
async fn expire(service: &Service, run: &RunId) -> bool {
    let runner = service.runner();
    match runner.expire(run.clone()).await.map(|expired| expired.taken) {
        None
        | Some(Ok(_) | Err(RunnerError::DrivenElsewhere { .. } | RunnerError::Closed | RunnerError::NoSuchRun(_))) => {
            true
        }
        Some(Err(error)) => {
            runner.report_undriven(run, &error).await;
            false
        }
    }
}
