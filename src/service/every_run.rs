//! Every run that a filter selects, read from the index page by page.

use toolgate_ports::{RunFilter, RunRow};
use toolgate_runner::{AgentRunner, RunnerError};

/// How many rows of the index are read at a time.
const PAGE: usize = 500;

/// The rows of all runs that the filter selects, newest first, whatever its limit.
pub(crate) async fn every_run(runner: &AgentRunner, filter: RunFilter) -> Result<Vec<RunRow>, RunnerError> {
    let mut filter = RunFilter { limit: PAGE, ..filter };
    let mut rows: Vec<RunRow> = Vec::new();
    loop {
        let page = runner.list(&filter).await?;
        let is_last = page.len() < PAGE;
        rows.extend(page);
        filter.before = rows.last().map(|row| row.id.clone());
        if is_last {
            return Ok(rows);
        }
    }
}
