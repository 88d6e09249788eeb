//! Operator: a person or a program whose only permission is access to the store. It finds the runs of all tenants and
//! changes them without the checks of a caller. Its other operations are in the files of their nouns: input for runs in
//! `decisions`, event streams in `event_stream/open` and `event_stream/settled`, pending items in `inbox/pending`,
//! orphaned runs in `worker/recovery`. Their errors are those of the runner, because an operator may read where the
//! store is.

use toolgate_core::run::Channel;
use toolgate_ports::{RunFilter, RunRow};
use toolgate_runner::{AgentRunner, RunnerError};

/// The runs of all tenants, for an operator. Cheap to clone.
#[derive(Clone)]
pub struct Operator {
    pub(crate) runner: AgentRunner,
    /// Where the operator's decisions are made, for the journal.
    pub(crate) via: Channel,
}

impl Operator {
    /// An operator of a runner's store. `via`: where its decisions are made.
    pub fn new(runner: AgentRunner, via: Channel) -> Self {
        Self { runner, via }
    }

    /// The rows of all runs that the filter selects, newest first, whatever its limit.
    pub async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, RunnerError> {
        every_run(&self.runner, filter).await
    }
}

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
