//! Sessions in memory, and the segments of their conversations, for the lifetime of the process.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use async_trait::async_trait;
use toolgate_core::id::{RunId, SessionId, Tenant};
use toolgate_ports::{
    AppendError, ChainLink, RunRow, SessionClaim, SessionFilter, SessionHead, SessionRow, SessionSaved, SessionStore,
    StoreError,
};

use super::MemoryStore;
use super::contents::{Contents, Run};

#[async_trait]
impl SessionStore for MemoryStore {
    async fn session(&self, tenant: &Tenant, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        Ok(self.contents().session(tenant, id))
    }

    async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        let limit = if filter.limit == 0 { 100 } else { filter.limit };
        let contents = self.contents();
        let mut found: Vec<_> = contents.sessions.values().filter(|row| filter.admits(row)).collect();
        found.sort_by_key(|row| Reverse((row.created_at, &row.id)));
        Ok(found.into_iter().take(limit).map(|row| contents.with_head(row)).collect())
    }

    async fn save_session(&self, expected: u64, row: &SessionRow) -> Result<SessionSaved, StoreError> {
        let mut contents = self.contents();
        let current = contents.session(&row.tenant, &row.id);
        let is_refused =
            |current: &SessionRow| current.deleted_at.is_some() || (row.deleted_at.is_some() && current.is_live());
        let version = current.as_ref().map_or(0, |current| current.version);
        if version != expected || current.as_ref().is_some_and(is_refused) {
            return Ok(SessionSaved::Changed(current.map(Box::new)));
        }
        let version = expected.saturating_add(1);
        let saved = match current {
            None => SessionRow { head: None, runs: 0, version, ..row.clone() },
            Some(current) => SessionRow {
                title: row.title.clone(),
                metadata: row.metadata.clone(),
                updated_at: row.updated_at,
                deleted_at: row.deleted_at,
                version,
                ..current
            },
        };
        contents.sessions.insert((row.tenant.clone(), row.id.clone()), saved);
        Ok(SessionSaved::Saved)
    }

    async fn conversation(&self, tenant: &Tenant, run: &RunId) -> Result<Vec<ChainLink>, StoreError> {
        let contents = self.contents();
        let (mut links, mut seen, mut next) = (Vec::new(), BTreeSet::new(), Some(run.clone()));
        while let Some(run) = next.filter(|run| seen.insert(run.clone())) {
            next = contents.run(tenant, &run).and_then(|run| run.row.predecessor.clone());
            let segment = contents.segments.get(&(tenant.clone(), run.clone())).cloned();
            links.push(ChainLink { run, segment });
        }
        links.reverse();
        Ok(links)
    }
}

impl Contents {
    /// The session with the current status of its head.
    fn session(&self, tenant: &Tenant, id: &SessionId) -> Option<SessionRow> {
        self.sessions.get(&(tenant.clone(), id.clone())).map(|row| self.with_head(row))
    }

    fn with_head(&self, row: &SessionRow) -> SessionRow {
        let head = row.head.as_ref().and_then(|head| self.runs.get(&head.run));
        let head =
            head.map(|Run { row, .. }| SessionHead { run: row.id.clone(), status: row.status, version: row.version });
        SessionRow { head, ..row.clone() }
    }

    fn run(&self, tenant: &Tenant, run: &RunId) -> Option<&Run> {
        self.runs.get(run).filter(|run| run.row.tenant == *tenant)
    }

    /// Whether a new run may claim its session.
    pub(super) fn check_claim(&self, claim: &SessionClaim, run: &RunRow) -> Result<(), AppendError> {
        let current = self.session(&run.tenant, &run.session);
        let version = current.as_ref().map_or(0, |current| current.version);
        let predecessor = run.predecessor.as_ref().and_then(|predecessor| self.run(&run.tenant, predecessor));
        let is_closed = |current: &SessionRow| current.is_live() || current.deleted_at.is_some();
        let is_refused = current.as_ref().is_some_and(is_closed)
            || predecessor.is_some_and(|predecessor| !predecessor.row.status.is_ended());
        if version != claim.expected || is_refused {
            return Err(AppendError::SessionChanged { current: current.map(Box::new) });
        }
        Ok(())
    }

    /// Moves the session's head to a new run, and stores the segment of the run's predecessor: once, and not after the
    /// deletion of the predecessor.
    pub(super) fn claim_session(&mut self, claim: SessionClaim, run: &RunRow) {
        self.sessions.insert((run.tenant.clone(), run.session.clone()), claim.row);
        if let (Some(segment), Some(predecessor)) = (claim.segment, &run.predecessor)
            && self.run(&run.tenant, predecessor).is_none_or(|predecessor| predecessor.row.purged_at.is_none())
        {
            self.segments.entry((run.tenant.clone(), predecessor.clone())).or_insert(segment);
        }
    }
}
