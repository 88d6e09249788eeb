//! What the total usage of a session does not contain.

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::view::MissingUsage;
use crate::ports::{RunFilter, SessionRow};

/// The most runs of a session that are read for its cost: the newest ones.
const MOST_RUNS: usize = 500;

/// What the total usage of a session does not contain, and the number of its compactions that replaced nothing.
pub(in crate::cli) async fn usage_gaps(app: &App, row: &SessionRow) -> Result<(MissingUsage, usize), CliError> {
    let of_session = RunFilter {
        tenant: Some(row.tenant.clone()),
        session: Some(row.id.clone()),
        limit: MOST_RUNS,
        ..RunFilter::default()
    };
    let runs = app.runner.list(&of_session).await?;
    let mut gaps = MissingUsage::default();
    runs.iter().for_each(|run| gaps.failed(&run.usage));
    Ok((gaps, runs.iter().filter(|run| run.is_ineffective_compaction()).count()))
}
