//! Where journals live. There is one write, and its position is the compare-and-set.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::BlobStore;
use crate::core::id::{AgentName, NodeId, RunId, SessionId, Tenant};
use crate::core::run::{Owes, Recorded, Status};

/// Events to append to a run's journal.
#[derive(Clone, Debug)]
pub struct Append {
    /// The run.
    pub run: RunId,
    /// The length the journal must have; 0 creates the run.
    pub at: u64,
    /// The events, consecutive from `at`.
    pub events: Vec<Recorded>,
    /// The index row as it is after them.
    pub row: RunRow,
    /// Who appends. The store makes it the owner while the run is running, and nobody when it is not.
    /// `None`: whoever owns the run keeps it, and a run that becomes running is free to claim.
    pub owner: Option<NodeId>,
    /// How long the ownership lasts without renewal.
    pub lease: Duration,
}

/// What listings show of a run; derived from its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// The run.
    pub id: RunId,
    /// Its agent.
    pub agent: AgentName,
    /// Its conversation.
    pub session: SessionId,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Tenant::is_default")]
    pub tenant: Tenant,
    /// Where it stands.
    pub status: Status,
    /// The length of its journal.
    pub version: u64,
    /// The beginning of the user's message.
    pub title: String,
    /// When the first event was written.
    pub created_at: Timestamp,
    /// When the last event was written.
    pub updated_at: Timestamp,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Owes::is_nothing")]
    pub owes: Owes,
    /// When its content was deleted. What is left is this row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purged_at: Option<Timestamp>,
}

/// Which runs to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Only this run.
    pub run: Option<RunId>,
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only with this status.
    pub status: Option<Status>,
    /// Only of this agent.
    pub agent: Option<AgentName>,
    /// Only of this conversation.
    pub session: Option<SessionId>,
    /// Only those that are owed this.
    pub owing: Option<Owing>,
    /// Only those of which something runs out by then.
    pub due_by: Option<Timestamp>,
    /// Also those whose content was deleted.
    pub purged: bool,
    /// Only runs older than this one (ids sort by creation).
    pub before: Option<RunId>,
    /// At most so many; 0 means 100.
    pub limit: usize,
}

/// A kind of thing that a run is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owing {
    /// A decision.
    Approval,
    /// The end of a server's task.
    Task,
}

impl RunFilter {
    /// Whether a run is to be listed.
    pub fn admits(&self, row: &RunRow) -> bool {
        self.run.as_ref().is_none_or(|run| row.id == *run)
            && self.tenant.as_ref().is_none_or(|tenant| row.tenant == *tenant)
            && self.status.is_none_or(|status| row.status == status)
            && self.agent.as_ref().is_none_or(|agent| row.agent == *agent)
            && self.session.as_ref().is_none_or(|session| row.session == *session)
            && self.owing.is_none_or(|owing| owing.is_in(&row.owes))
            && self.due_by.is_none_or(|by| row.owes.due_at.is_some_and(|due| due <= by))
            && (self.purged || row.purged_at.is_none())
            && self.before.as_ref().is_none_or(|before| row.id < *before)
    }
}

impl Owing {
    fn is_in(self, owes: &Owes) -> bool {
        match self {
            Self::Approval => owes.approvals > 0,
            Self::Task => owes.tasks > 0,
        }
    }
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPosition {
    /// The run.
    pub run: RunId,
    /// The length of its journal.
    pub version: u64,
    /// Whether its content was deleted.
    pub is_purged: bool,
}

/// What became of a wish to delete what a run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// It is gone, since then; perhaps since an earlier wish.
    Since(Timestamp),
    /// Nothing was deleted: the run is not over, its journal is not that long, or there is no such run.
    No,
}

/// Asks for the ownership of running runs that nobody (alive) owns.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Who asks.
    pub owner: NodeId,
    /// This run, or else any.
    pub run: Option<RunId>,
    /// How long the ownership lasts without renewal.
    pub lease: Duration,
    /// At most so many.
    pub limit: usize,
}

/// A store that does not answer, or answers nonsense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be read or written; trying again may help.
    #[error("the store cannot be used: {0}")]
    Unavailable(String),
    /// It holds something this version cannot read.
    #[error("the store holds something this version of toolgate cannot read: {0}")]
    Corrupt(String),
}

/// Why an append did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The journal is not `at` long; it is as long as said here.
    #[error("the journal has {length} events")]
    Conflict {
        /// Its length.
        length: u64,
    },
    /// Another owner holds an unexpired lease.
    #[error("the run is driven by {0}")]
    Owned(NodeId),
    /// The store is at fault.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The journals of all runs. All or nothing: an append that is refused changes nothing.
#[async_trait]
pub trait RunStore: Send + Sync {
    /// Appends if the journal is exactly `at` long. Returns when it is durable.
    async fn append(&self, append: Append) -> Result<(), AppendError>;

    /// The events from position `from` on; empty when there are none, or no such run.
    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<Recorded>, StoreError>;

    /// The index rows that pass the filter, newest first.
    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError>;

    /// Takes ownership of running runs that have no owner, or whose owner's lease has run out, oldest first.
    /// A run the asker owns already is given again when asked for by name.
    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError>;

    /// Orphaned runs, oldest first and at most so many: they are running and have no owner, or the lease of their owner has run
    /// out. They are those that [`claim`](Self::claim) takes. Writes nothing.
    async fn orphaned(&self, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// Prolongs that owner's leases of these runs. What it does not name runs out: an owner that lives, but has given a
    /// run up, must not keep it from others.
    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError>;

    /// Deletes the journal of a run that is over and exactly `at` long, for good; its index row stays, without the title
    /// and with the time. What is deleted already stays as it is. Nothing is ever appended to it again.
    async fn purge(&self, run: &RunId, at: u64, now: Timestamp) -> Result<Purged, StoreError>;

    /// How far these runs are, in any order; those that do not exist are left out.
    async fn positions(&self, runs: &[RunId]) -> Result<Vec<RunPosition>, StoreError> {
        let mut positions = Vec::with_capacity(runs.len());
        for run in runs {
            let filter = RunFilter { run: Some(run.clone()), purged: true, limit: 1, ..RunFilter::default() };
            positions.extend(self.list(&filter).await?.into_iter().map(|row| RunPosition {
                run: row.id,
                version: row.version,
                is_purged: row.purged_at.is_some(),
            }));
        }
        Ok(positions)
    }

    /// Whether it can be read at this moment. Lists that others read do not delay the answer.
    async fn check_read(&self) -> Result<(), StoreError> {
        // No run has this id: an answer is wanted, and no work.
        let nothing = RunFilter { run: Some("run_".into()), limit: 1, ..RunFilter::default() };
        self.list(&nothing).await.map(drop)
    }

    /// Whether it can be written. The answer may be a few seconds old.
    async fn check_write(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The same store for content outside the journals, if it keeps that as well.
    fn blobs(self: Arc<Self>) -> Option<Arc<dyn BlobStore>> {
        None
    }
}
