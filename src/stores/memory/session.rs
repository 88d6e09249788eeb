//! Sessions in memory, and the segments of their conversations, for the lifetime of the process.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use async_trait::async_trait;
use toolgate_core::id::{RunId, SessionId, Tenant};
use toolgate_core::run::Segment;
use toolgate_ports::{
    AppendError, RunRow, SessionClaim, SessionFilter, SessionHead, SessionRow, SessionSaved, SessionStore, StoreError,
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
        let is_refused = |current: &SessionRow| {
            current.deleted_at.is_some() || (row.deleted_at.is_some() && contents.has_live_run(current))
        };
        let version = current.as_ref().map_or(0, |current| current.version);
        if version != expected || current.as_ref().is_some_and(is_refused) {
            return Ok(SessionSaved::Changed(current.map(Box::new)));
        }
        let version = expected.saturating_add(1);
        let saved = match current {
            None => SessionRow { version, ..row.clone() },
            Some(current) => SessionRow {
                title: row.title.clone(),
                settings: row.settings.clone(),
                updated_at: row.updated_at,
                deleted_at: row.deleted_at,
                version,
                ..current
            },
        };
        let is_deleted = saved.deleted_at.is_some();
        contents.sessions.insert((row.tenant.clone(), row.id.clone()), saved);
        if is_deleted {
            contents.blank_grants(|grant| grant.tenant == row.tenant && grant.session.as_ref() == Some(&row.id));
            let of_tenant = contents.requests.iter_mut().filter(|((tenant, ..), _)| *tenant == row.tenant);
            of_tenant.for_each(|(_, stored)| stored.forget_answer(|reply| reply.session.as_ref() == Some(&row.id)));
        }
        Ok(SessionSaved::Saved)
    }

    async fn segment_lengths(&self, tenant: &Tenant, run: &RunId) -> Result<Vec<(RunId, Option<u64>)>, StoreError> {
        let contents = self.contents();
        let (mut links, mut seen, mut next) = (Vec::new(), BTreeSet::new(), Some(run.clone()));
        while let Some(run) = next.filter(|run| seen.insert(run.clone())) {
            next = contents.run(tenant, &run).and_then(|run| run.row.predecessor.clone());
            let segment = contents.segments.get(&(tenant.clone(), run.clone()));
            links.push((run, segment.map(|segment| segment.messages.len() as u64)));
        }
        links.reverse();
        Ok(links)
    }

    async fn segments(&self, tenant: &Tenant, runs: &[RunId]) -> Result<Vec<(RunId, Segment)>, StoreError> {
        let contents = self.contents();
        let segment = |run: &RunId| Some((run.clone(), contents.segments.get(&(tenant.clone(), run.clone()))?.clone()));
        Ok(runs.iter().filter_map(segment).collect())
    }
}

impl Contents {
    /// The session with the current status of its head.
    fn session(&self, tenant: &Tenant, id: &SessionId) -> Option<SessionRow> {
        self.sessions.get(&(tenant.clone(), id.clone())).map(|row| self.with_head(row))
    }

    fn with_head(&self, row: &SessionRow) -> SessionRow {
        let head = row.head.as_ref().and_then(|head| self.runs.get(&head.run));
        let head = head.map(|Run { row, .. }| SessionHead::from_run(row.clone()));
        SessionRow { head, ..row.clone() }
    }

    /// Deletes the conversation before a deleted run, if its runs are not in this store and no other run continues it.
    pub(super) fn forget_conversation_before(&mut self, run: &RunId) {
        let Some(RunRow { tenant, predecessor: Some(before), .. }) = self.runs.get(run).map(|run| &run.row) else {
            return;
        };
        let continues = |row: &RunRow| row.tenant == *tenant && row.predecessor.as_ref() == Some(before);
        let is_needed = self.run(tenant, before).is_some()
            || self.runs.values().any(|run| run.row.purged_at.is_none() && continues(&run.row));
        if !is_needed {
            let place = (tenant.clone(), before.clone());
            self.segments.remove(&place);
        }
    }

    /// Whether a run of the session is live, as its head or beside the conversation.
    fn has_live_run(&self, session: &SessionRow) -> bool {
        let is_in = |row: &RunRow| row.tenant == session.tenant && row.session == session.id;
        self.runs.values().any(|run| is_in(&run.row) && !run.row.status.is_ended())
    }

    /// Refuses a new run in a deleted session.
    pub(super) fn check_not_deleted(&self, run: &RunRow) -> Result<(), AppendError> {
        match self.session(&run.tenant, &run.session).filter(|session| session.deleted_at.is_some()) {
            Some(current) => Err(AppendError::SessionChanged { current: Some(Box::new(current)) }),
            None => Ok(()),
        }
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
