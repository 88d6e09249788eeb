//! Commit log in memory.

use std::collections::VecDeque;

use async_trait::async_trait;
use toolgate_core::id::Tenant;
use toolgate_ports::{COMMITS_KEPT, Commit, CommitLog, RunRow, StoreError};

use super::MemoryStore;
use super::contents::Contents;

impl Contents {
    /// Adds an append to the log of its tenant. `first`: the position of its first event. An append without events is no
    /// commit.
    pub(super) fn log_commit(&mut self, row: &RunRow, first: u64) {
        if row.version == first {
            return;
        }
        let log: &mut VecDeque<Commit> = self.commits.entry(row.tenant.clone()).or_default();
        log.push_back(Commit {
            position: log.back().map_or(0, |latest| latest.position) + 1,
            run: row.id.clone(),
            agent: row.agent.clone(),
            session: row.session.clone(),
            first,
            length: row.version,
        });
        if log.len() as u64 > COMMITS_KEPT {
            log.pop_front();
        }
    }
}

#[async_trait]
impl CommitLog for MemoryStore {
    async fn commits(&self, tenant: &Tenant, after: u64, limit: usize) -> Result<Vec<Commit>, StoreError> {
        let contents = self.contents();
        let log = contents.commits.get(tenant);
        let start = log.map_or(0, |log| log.partition_point(|commit| commit.position <= after));
        Ok(log.into_iter().flat_map(|log| log.iter().skip(start)).take(limit).cloned().collect())
    }

    async fn latest_commits(&self, tenants: &[Tenant]) -> Result<Vec<u64>, StoreError> {
        let contents = self.contents();
        let latest = |tenant| contents.commits.get(tenant).and_then(VecDeque::back).map_or(0, |commit| commit.position);
        Ok(tenants.iter().map(latest).collect())
    }
}
