//! Operator: a person or a program whose only permission is access to the store. It finds the runs of all tenants and
//! changes them without the checks of a caller. Its other operations are in the files of their nouns: input for runs in
//! `decisions`, event streams in `event_stream/open` and `event_stream/settled`, pending items in `inbox/pending`,
//! orphaned runs in `worker/recovery`. Their errors are those of the runner, because an operator may read where the
//! store is.

use toolgate_core::run::Channel;
use toolgate_ports::{RunFilter, RunRow};
use toolgate_runner::{AgentRunner, RunnerError};

use super::every_run::every_run;

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
