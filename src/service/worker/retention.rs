//! Retention: deletes ended runs whose conversations have had no activity for long enough. Later runs of a session read its
//! earlier ones, so all runs of a session are as old as its last activity.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use toolgate_core::id::{SessionId, Tenant};
use toolgate_core::run::Status;
use toolgate_ports::{ListOrder, RunFilter, RunRow};
use toolgate_runner::{AgentRunner, RunnerError};

use crate::operator::Operator;
use crate::retention_rule::RetentionRule;
use crate::service::Service;

/// The time between two passes.
const INTERVAL: Duration = Duration::from_secs(3600);
/// How many rows are read at a time.
const PAGE: usize = 200;

/// Deletes expired runs again and again.
pub(super) async fn run(service: Service, rules: Vec<RetentionRule>) {
    loop {
        match delete_expired(&service.runner(), &rules, Timestamp::now()).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "ended runs deleted after their retention"),
            Err(error) => tracing::warn!(%error, "failed to delete ended runs after their retention"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

impl Operator {
    /// Deletes the ended runs of all tenants that these rules do not keep at this time, as [`AgentRunner::purge`] does.
    /// Returns their number.
    pub async fn delete_expired(&self, rules: &[RetentionRule], now: Timestamp) -> Result<usize, RunnerError> {
        delete_expired(&self.runner, rules, now).await
    }
}

async fn delete_expired(runner: &AgentRunner, rules: &[RetentionRule], now: Timestamp) -> Result<usize, RunnerError> {
    let Some(shortest) = rules.iter().map(|rule| rule.keep).min() else { return Ok(0) };
    let mut filter = RunFilter {
        statuses: Status::ALL.into_iter().filter(|status| status.is_ended()).collect(),
        created_before: Some(now.checked_sub(shortest).unwrap_or(Timestamp::MIN)),
        order: ListOrder::OldestFirst,
        limit: PAGE,
        ..RunFilter::default()
    };
    let mut deleted = 0;
    loop {
        let page = runner.list(&filter).await?;
        // Read again for each page: a session may go on meanwhile.
        let mut sessions = BTreeMap::new();
        for row in &page {
            let Some(rule) = rules.iter().find(|rule| rule.concerns(row)) else { continue };
            let is_expired = |last: Timestamp| now.duration_since(last) >= rule.keep;
            if !is_expired(row.updated_at) {
                continue;
            }
            let session = (row.tenant.clone(), row.session.clone());
            let last = match sessions.get(&session) {
                Some(last) => *last,
                None => *sessions.entry(session).or_insert(last_activity(runner, &row.tenant, &row.session).await?),
            };
            if last.is_some_and(is_expired) {
                deleted += usize::from(delete(runner, row).await?);
            }
        }
        filter.after = page.last().map(|row| row.id.clone());
        if page.len() < PAGE {
            return Ok(deleted);
        }
    }
}

/// The time of the last activity of a session; `None` while its latest run has not ended. A run without a session of its own
/// has none but its own.
async fn last_activity(
    runner: &AgentRunner,
    tenant: &Tenant,
    session: &SessionId,
) -> Result<Option<Timestamp>, RunnerError> {
    let Some(row) = runner.session(tenant, session).await? else { return Ok(Some(Timestamp::MIN)) };
    let Some(head) = &row.head else { return Ok(Some(row.updated_at)) };
    let latest = runner.row(&head.run).await?;
    Ok(match latest {
        Some(latest) if !latest.status.is_ended() => None,
        Some(latest) => Some(latest.updated_at.max(row.updated_at)),
        None => Some(row.updated_at),
    })
}

/// Whether the run was deleted. Another process may have begun a retry of it, or deleted it.
async fn delete(runner: &AgentRunner, row: &RunRow) -> Result<bool, RunnerError> {
    match runner.purge(&row.id).await {
        Ok(()) => Ok(true),
        Err(RunnerError::NotOver { .. } | RunnerError::StillDriven(_) | RunnerError::NoSuchRun(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
