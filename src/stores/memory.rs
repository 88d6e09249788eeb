//! In-memory store: for tests, and for runs that need not survive the process.

mod access_key;
mod contents;
mod day_usage;
mod event_log;
mod feedback;
mod file;
mod idempotency;
mod rule_counters;
mod run_index;
mod session;
mod stream_ticket;
mod webhooks;

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Map;
use tokio::time::Instant;
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::id::{GrantId, NodeId, RunId};
use toolgate_core::run::{JournalEntry, PendingCounts, RunResult, Status, ToolGrant};
use toolgate_ports::{
    Append, AppendError, ApprovalCache, BlobError, BlobInfo, BlobStore, Claim, ClaimedSpans, Grant, GrantContext,
    GrantFilter, GuardedTool, Purged, Revoked, RunFilter, RunRow, RunStore, SPAN_LEASE, SpanClaim, SpanMark,
    StoreError, check_blob_size,
};

use self::contents::{BlobRecord, Contents, Lease, Run};
use self::run_index::ordered;
use super::wellformed;

/// Journals, sessions, grants and blobs in this process's memory. Leases run on tokio's clock, so a paused clock pauses
/// them.
#[derive(Debug, Default)]
pub struct MemoryStore {
    contents: Mutex<Contents>,
}

impl MemoryStore {
    /// A store without runs and grants.
    pub fn new() -> Self {
        Self::default()
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        // Every change is made after its last check, so a panic elsewhere leaves nothing half-written.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl RunStore for MemoryStore {
    async fn append(&self, append: Append) -> Result<(), AppendError> {
        wellformed::check(&append)?;
        let mut contents = self.contents();
        let known = contents.runs.get(&append.run);
        let length = known.map_or(0, |run| run.row.version);
        let is_purged = known.is_some_and(|run| run.row.purged_at.is_some());
        if length != append.at || is_purged {
            return Err(AppendError::Conflict { length });
        }
        let lease = lease_after(known.and_then(|run| run.lease.as_ref()), &append)?;
        let added = contents.added_usage(&append).map_err(|over| AppendError::OverQuota(Box::new(over)))?;
        let Append { run, at, events, row, session, spans_sent, .. } = append;
        if let Some(claim) = session {
            contents.check_claim(&claim, &row)?;
            contents.claim_session(*claim, &row);
        } else if at == 0 {
            contents.check_not_deleted(&row)?;
        }
        contents.log(&row, at);
        if let Some(added) = added {
            contents.add_usage(added);
        }
        let Contents { runs, run_index, webhooks, .. } = &mut *contents;
        webhooks.changed(&row);
        match runs.get_mut(&run) {
            Some(known) => {
                run_index.replace(Some(&known.row), &row);
                known.row = RunRow { metadata: std::mem::take(&mut known.row.metadata), ..row };
                known.lease = lease;
                known.journal.extend(events);
            }
            None => {
                run_index.replace(None, &row);
                let spans = spans_sent.map(|sent| (sent, Instant::now() + SPAN_LEASE));
                runs.insert(run, Run { row, journal: events, lease, spans });
            }
        }
        Ok(())
    }

    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, StoreError> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let contents = self.contents();
        let tail = contents.runs.get(run).and_then(|run| run.journal.get(from..));
        Ok(tail.map(<[_]>::to_vec).unwrap_or_default())
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let limit = if filter.limit == 0 { 100 } else { filter.limit };
        let contents = self.contents();
        if let Some(id) = &filter.run {
            let row = contents.runs.get(id).map(|run| &run.row);
            return Ok(row.filter(|row| filter.admits(row)).cloned().into_iter().collect());
        }
        let runs: Box<dyn Iterator<Item = &Run>> = match contents.run_index.candidates(filter) {
            Some(ids) => Box::new(ids.filter_map(|id| contents.runs.get(id))),
            None => ordered(contents.runs.values(), filter.order),
        };
        let rows = runs.map(|run| &run.row);
        Ok(rows.filter(|row| filter.admits(row)).take(limit).cloned().collect())
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError> {
        let lease = Lease::new(&claim.owner, claim.lease);
        let mut contents = self.contents();
        let Contents { runs, run_index, .. } = &mut *contents;
        let is_claimable = |id: &&RunId| runs.get(*id).is_some_and(|run| run.can_be_claimed(claim));
        let claimed: Vec<RunId> = match &claim.run {
            Some(named) => Some(named).filter(is_claimable).into_iter().take(claim.limit).cloned().collect(),
            None => run_index.running().filter(is_claimable).take(claim.limit).cloned().collect(),
        };
        for run in &claimed {
            if let Some(run) = runs.get_mut(run) {
                run.lease = Some(lease.clone());
            }
        }
        Ok(claimed)
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let contents = self.contents();
        let is_orphaned = |id: &&RunId| contents.runs.get(*id).is_some_and(Run::is_orphaned);
        Ok(contents.run_index.running().filter(is_orphaned).take(limit).cloned().collect())
    }

    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError> {
        let renewed = Lease::new(owner, lease);
        let mut contents = self.contents();
        for run in runs {
            let lease = contents.runs.get_mut(run).and_then(|run| run.lease.as_mut());
            if let Some(lease) = lease.filter(|lease| lease.owner == *owner) {
                *lease = renewed.clone();
            }
        }
        Ok(())
    }

    async fn claim_spans(&self, claim: &SpanClaim) -> Result<ClaimedSpans, StoreError> {
        let mut contents = self.contents();
        let spans = contents.runs.get_mut(&claim.run).and_then(|run| run.spans.as_mut());
        let Some((sent, until)) = spans else { return Ok(ClaimedSpans::Unmarked) };
        if *sent < claim.at && !claim.is_abandoned && *until > Instant::now() {
            return Ok(ClaimedSpans::Held);
        }
        *until = Instant::now() + claim.lease;
        Ok(ClaimedSpans::From(*sent))
    }

    async fn mark_spans(&self, marks: &[SpanMark]) -> Result<(), StoreError> {
        let mut contents = self.contents();
        for mark in marks {
            if let Some(run) = contents.runs.get_mut(&mark.run) {
                let sent = run.spans.map_or(mark.sent, |(sent, _)| sent.max(mark.sent));
                run.spans = Some((sent, Instant::now() + mark.lease));
            }
        }
        Ok(())
    }

    async fn unsent_spans(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let contents = self.contents();
        let later = contents.runs.iter().filter(|(id, _)| after.is_none_or(|after| *id > after));
        let unsent = later.filter(|(_, run)| run.has_unsent_spans());
        Ok(unsent.take(limit).map(|(id, _)| id.clone()).collect())
    }

    async fn purge(&self, run: &RunId, at: u64, now: Timestamp) -> Result<Purged, StoreError> {
        let mut contents = self.contents();
        let Contents { runs, run_index, requests, segments, sessions, webhooks, feedback, .. } = &mut *contents;
        let id = run;
        let Some(run) = runs.get_mut(id) else { return Ok(Purged::No) };
        if let Some(since) = run.row.purged_at {
            return Ok(Purged::Since(since));
        }
        if !run.row.status.is_ended() || run.row.version != at {
            return Ok(Purged::No);
        }
        requests.values_mut().for_each(|stored| stored.forget_answer(|reply| reply.run.as_ref() == Some(id)));
        segments.remove(&(run.row.tenant.clone(), id.clone()));
        webhooks.remove_of_run(id);
        feedback.remove(id);
        if let Some(session) = sessions.get_mut(&(run.row.tenant.clone(), run.row.session.clone())) {
            let quotes_it = session.title == run.row.title;
            if quotes_it {
                session.title = String::new();
            }
            if quotes_it || session.head.as_ref().is_some_and(|head| head.run == *id) {
                session.version += 1;
            }
        }
        run.journal = Vec::new();
        let row = RunRow {
            title: String::new(),
            metadata: Map::new(),
            pending_counts: PendingCounts::default(),
            result: run.row.result.clone().map(RunResult::without_content),
            purged_at: Some(now),
            ..run.row.clone()
        };
        run_index.replace(Some(&run.row), &row);
        run.row = row;
        contents.forget_conversation_before(id);
        contents.blank_grants(|grant| grant.given_with.as_ref().is_some_and(|call| call.run == *id));
        Ok(Purged::Since(now))
    }

    fn blobs(self: Arc<Self>) -> Option<Arc<dyn BlobStore>> {
        Some(self)
    }
}

#[async_trait]
impl BlobStore for MemoryStore {
    async fn put(&self, run: &RunId, blob: Blob) -> Result<BlobHandle, BlobError> {
        check_blob_size(&blob)?;
        let handle = blob.handle();
        let mut contents = self.contents();
        let record = contents.blobs.entry(handle).or_insert_with(|| BlobRecord { blob, users: BTreeSet::new() });
        record.users.insert(run.as_str().into());
        Ok(handle)
    }

    async fn share(&self, run: &RunId, handles: &[BlobHandle]) -> Result<(), StoreError> {
        let mut contents = self.contents();
        for handle in handles {
            if let Some(record) = contents.blobs.get_mut(handle) {
                record.users.insert(run.as_str().into());
            }
        }
        Ok(())
    }

    async fn forget(&self, run: &RunId) -> Result<(), StoreError> {
        self.contents().release_blobs(run.as_str());
        Ok(())
    }

    async fn get(&self, handle: &BlobHandle) -> Result<Option<Blob>, StoreError> {
        Ok(self.contents().blobs.get(handle).map(|record| record.blob.clone()))
    }

    async fn describe(&self, handle: &BlobHandle) -> Result<Option<BlobInfo>, StoreError> {
        Ok(self.contents().blobs.get(handle).map(|record| BlobInfo::from(&record.blob)))
    }
}

#[async_trait]
impl ApprovalCache for MemoryStore {
    async fn granted(
        &self,
        context: &GrantContext,
        tools: &[GuardedTool],
        now: Timestamp,
    ) -> Result<Vec<ToolGrant>, StoreError> {
        let contents = self.contents();
        let Some(of_tenant) = contents.grants_by_definition.get(&context.tenant) else { return Ok(Vec::new()) };
        let each = tools.iter().flat_map(|guarded| {
            let given = of_tenant.get(&guarded.definition).into_iter().flatten();
            let holding = given.filter_map(|id| contents.grants.get(id));
            let holding = holding.filter(|grant| grant.holds(now) && grant.is_of(context));
            holding.map(|grant| grant.granted(&guarded.tool))
        });
        Ok(each.collect())
    }

    async fn hold(&self, grants: &[GrantId], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let contents = self.contents();
        Ok(grants.iter().map(|id| contents.grants.get(id).is_some_and(|grant| grant.holds(now))).collect())
    }

    async fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        let Contents { grants, grants_by_definition, .. } = &mut *self.contents();
        if let Entry::Vacant(vacant) = grants.entry(grant.id.clone()) {
            let of_tenant = grants_by_definition.entry(grant.tenant.clone()).or_default();
            of_tenant.entry(grant.definition.clone()).or_default().insert(grant.id.clone());
            vacant.insert(grant.clone());
        }
        Ok(())
    }

    async fn grants(&self, filter: &GrantFilter, now: Timestamp) -> Result<Vec<Grant>, StoreError> {
        let contents = self.contents();
        let candidates: Vec<&Grant> = match (&filter.id, &filter.tenant) {
            (Some(id), _) => contents.grants.get(id).into_iter().collect(),
            (None, Some(tenant)) => {
                let of_tenant =
                    contents.grants_by_definition.get(tenant).into_iter().flat_map(BTreeMap::values).flatten();
                of_tenant.filter_map(|id| contents.grants.get(id)).collect()
            }
            (None, None) => contents.grants.values().collect(),
        };
        let after = filter.after.as_ref().map(|after| contents.grants.get(after));
        let admitted = candidates.into_iter().filter(|grant| filter.admits(grant, now));
        Ok(page(admitted, after, filter.limit, |grant| Reverse((grant.created_at, &grant.id))))
    }

    async fn revoke(&self, grant: &GrantId, revoked: &Revoked) -> Result<Option<Grant>, StoreError> {
        let mut contents = self.contents();
        Ok(contents.grants.get_mut(grant).map(|grant| {
            grant.revoked.get_or_insert_with(|| revoked.clone());
            grant.clone()
        }))
    }
}

/// A page of a list, sorted by `place`: at most `limit` rows that follow the cursor row. The page is empty if the
/// cursor row does not exist.
fn page<'a, T: Clone, P: Ord>(
    admitted: impl Iterator<Item = &'a T>,
    after: Option<Option<&'a T>>,
    limit: Option<usize>,
    place: impl Fn(&'a T) -> P,
) -> Vec<T> {
    let after = match after {
        Some(None) => return Vec::new(),
        Some(Some(after)) => Some(place(after)),
        None => None,
    };
    let mut found: Vec<&T> = admitted.filter(|row| after.as_ref().is_none_or(|after| place(row) > *after)).collect();
    found.sort_by_key(|row| place(row));
    found.into_iter().take(limit.unwrap_or(usize::MAX)).cloned().collect()
}

/// The lease after the append, or an error if another driver holds the current one.
fn lease_after(current: Option<&Lease>, append: &Append) -> Result<Option<Lease>, AppendError> {
    if let (Some(owner), Some(current)) = (&append.owner, current)
        && current.owner != *owner
        && !current.has_run_out()
    {
        return Err(AppendError::Owned(current.owner.clone()));
    }
    if append.row.status != Status::Running {
        return Ok(None);
    }
    let fresh = append.owner.as_ref().map(|owner| Lease::new(owner, append.lease));
    Ok(fresh.or_else(|| current.cloned()))
}
