//! Commit log: the appends to the journals of a tenant, in the order in which they became visible. It lets a reader follow
//! all runs of a tenant, and resume at the same place in any process.

use async_trait::async_trait;
use toolgate_core::id::{AgentName, RunId, SessionId, Tenant};

use super::StoreError;

/// The least number of commits of a tenant that a store keeps.
pub const COMMITS_KEPT: u64 = 100_000;

/// A commit: one append of events to the journal of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its number among the commits of its tenant, from 1, without gaps.
    pub position: u64,
    pub run: RunId,
    pub agent: AgentName,
    pub session: SessionId,
    /// The journal position of its first event.
    pub first: u64,
    /// The length of the journal after its last event.
    pub length: u64,
}

/// The log of commits. A store writes it in the transaction of [`append`](super::RunStore::append), so that it
/// contains exactly the appends that succeeded.
#[async_trait]
pub trait CommitLog: Send + Sync {
    /// The commits of a tenant after a position, in order, up to a maximum number. Once a commit was returned, no commit
    /// with a smaller position appears. Commits that the store no longer keeps are omitted.
    async fn commits(&self, tenant: &Tenant, after: u64, limit: usize) -> Result<Vec<Commit>, StoreError>;

    /// The position of the latest commit of each of these tenants, in their order; 0 without one.
    async fn latest_commits(&self, tenants: &[Tenant]) -> Result<Vec<u64>, StoreError>;
}
