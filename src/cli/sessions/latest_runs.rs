//! Facts about a session that its latest runs tell, and its own row does not.

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::view::MissingUsage;
use crate::ports::{RunFilter, RunRow, SessionRow};

/// The most runs of a session that are read: the newest ones.
const MOST_RUNS: usize = 500;

#[derive(Default)]
pub(in crate::cli) struct LatestRuns {
    /// What the total usage of the session does not contain.
    pub(in crate::cli) missing: MissingUsage,
    /// The number of compactions that replaced nothing.
    pub(in crate::cli) ineffective: usize,
    /// Whether no process executes the latest run, which is running.
    is_interrupted: bool,
}

impl LatestRuns {
    pub(in crate::cli) async fn of(app: &App, session: &SessionRow) -> Result<Self, CliError> {
        let of_session = RunFilter {
            tenant: Some(session.tenant.clone()),
            session: Some(session.id.clone()),
            limit: MOST_RUNS,
            ..RunFilter::default()
        };
        let runs = app.runner.list(&of_session).await?;
        let mut missing = MissingUsage::default();
        runs.iter().for_each(|run| missing.failed(&run.usage));
        let ineffective = runs.iter().filter(|run| run.is_ineffective_compaction()).count();
        let is_head = |run: &&RunRow| session.head.as_ref().is_some_and(|head| head.run == run.id);
        let is_interrupted = runs.iter().find(is_head).is_some_and(|run| run.is_interrupted);
        Ok(Self { missing, ineffective, is_interrupted })
    }

    /// The status of the latest run, if it has not ended.
    pub(super) fn open_status(&self, session: &SessionRow) -> Option<&'static str> {
        let head = session.head.as_ref().filter(|head| !head.status.is_ended())?;
        Some(if self.is_interrupted { RunRow::INTERRUPTED } else { head.status.as_str() })
    }
}
