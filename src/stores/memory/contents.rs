//! Contents of the store in memory: the records of runs, sessions, grants, blobs, keys, requests and webhooks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use tokio::time::Instant;
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::id::{EndpointId, FeedbackId, FileId, GrantId, MessageId, NodeId, RunId, SessionId, Tenant};
use toolgate_core::policy::LimitAmount;
use toolgate_core::run::{JournalEntry, Segment, Status};
use toolgate_ports::{
    AccessKey, Claim, DayUsage, Feedback, Grant, IdempotencyRecord, KeyHash, Quotas, RequestState, RuleCounter, RunRow,
    SessionRow, StoredFile, StoredResponse, StreamTicket, WebhookDelivery, WebhookEndpoint,
};

use super::run_index::RunIndex;

#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) runs: BTreeMap<RunId, Run>,
    pub(super) run_index: RunIndex,
    pub(super) log: Vec<LogRecord>,
    pub(super) sessions: BTreeMap<(Tenant, SessionId), SessionRow>,
    pub(super) segments: BTreeMap<(Tenant, RunId), Segment>,
    pub(super) grants: BTreeMap<GrantId, Grant>,
    /// The grants of each tenant for each definition of a tool.
    pub(super) grants_by_definition: BTreeMap<Tenant, BTreeMap<String, BTreeSet<GrantId>>>,
    pub(super) blobs: BTreeMap<BlobHandle, BlobRecord>,
    pub(super) files: BTreeMap<FileId, StoredFile>,
    pub(super) feedback: BTreeMap<RunId, BTreeMap<FeedbackId, Feedback>>,
    pub(super) keys: BTreeMap<KeyHash, AccessKey>,
    pub(super) tickets: BTreeMap<KeyHash, StreamTicket>,
    pub(super) requests: BTreeMap<RequestKey, StoredRequest>,
    pub(super) webhooks: WebhookContents,
    /// The uses of each counter of a rule, by identity.
    pub(super) counters: BTreeMap<RuleCounter, BTreeMap<String, LimitAmount>>,
    pub(super) quotas: Arc<Quotas>,
    /// Usage by day, tenant and caller; that of a whole tenant has no caller.
    pub(super) day_usage: BTreeMap<(Date, Tenant, Option<String>), DayUsage>,
}

/// An event of the log, whose position is its index and 1.
#[derive(Debug)]
pub(super) struct LogRecord {
    pub(super) run: RunId,
    pub(super) seq: u64,
    pub(super) ends_append: bool,
}

#[derive(Debug)]
pub(super) struct BlobRecord {
    pub(super) blob: Blob,
    /// The ids of the runs and files that use it.
    pub(super) users: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) row: RunRow,
    pub(super) journal: Vec<JournalEntry>,
    pub(super) lease: Option<Lease>,
    /// The mark of its spans, and the end of the exporter's lease.
    pub(super) spans: Option<(u64, Instant)>,
}

#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) owner: NodeId,
    /// `None`: the end lies beyond the range of the clock.
    pub(super) until: Option<Instant>,
}

/// Tenant, caller and idempotency key.
pub(super) type RequestKey = (Tenant, String, String);

/// A request and the time its record expires.
#[derive(Debug)]
pub(super) struct StoredRequest {
    pub(super) record: IdempotencyRecord,
    pub(super) expires_at: Timestamp,
}

impl StoredRequest {
    /// Drops the stored response if it quotes what is deleted, and keeps the fact that the request was answered.
    pub(super) fn forget_answer(&mut self, quotes: impl Fn(&StoredResponse) -> bool) {
        if matches!(&self.record.state, RequestState::Answered(reply) if quotes(reply)) {
            self.record.state = RequestState::NotStored;
        }
    }
}

impl Contents {
    /// Removes all uses of a run or file, and the blobs that nothing else uses.
    pub(super) fn release_blobs(&mut self, user: &str) {
        self.blobs.retain(|_, record| !record.users.remove(user) || !record.users.is_empty());
    }

    /// Deletes the texts of the grants that quote what is deleted.
    pub(super) fn blank_grants(&mut self, quotes: impl Fn(&Grant) -> bool) {
        self.grants.values_mut().filter(|grant| quotes(grant)).for_each(Grant::blank);
    }
}

#[derive(Debug, Default)]
pub(super) struct WebhookContents {
    pub(super) endpoints: BTreeMap<EndpointId, WebhookEndpoint>,
    pub(super) deliveries: BTreeMap<MessageId, WebhookDelivery>,
    pub(super) announced: BTreeMap<RunId, u64>,
    /// Idle or ended runs that may have events past the announced position.
    pub(super) changed: BTreeSet<RunId>,
}

impl Run {
    /// Whether the run is running without an unexpired lease.
    pub(super) fn is_orphaned(&self) -> bool {
        self.row.status == Status::Running && self.lease.as_ref().is_none_or(Lease::has_run_out)
    }

    /// Whether it is idle or has ended, lacks spans at the collector, and no exporter has the lease.
    pub(super) fn has_unsent_spans(&self) -> bool {
        let is_idle = self.row.status != Status::Running && self.row.purged_at.is_none();
        is_idle && self.spans.is_some_and(|(sent, until)| sent < self.row.version && until <= Instant::now())
    }

    pub(super) fn can_be_claimed(&self, claim: &Claim) -> bool {
        let Some(named) = &claim.run else { return self.is_orphaned() };
        let is_own =
            self.row.status == Status::Running && self.lease.as_ref().is_some_and(|lease| lease.owner == claim.owner);
        self.row.id == *named && (self.is_orphaned() || is_own)
    }
}

impl Lease {
    pub(super) fn new(owner: &NodeId, lease: Duration) -> Self {
        Self { owner: owner.clone(), until: Instant::now().checked_add(lease) }
    }

    pub(super) fn has_run_out(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }
}

impl WebhookContents {
    /// Notes that an append changed a run.
    pub(super) fn changed(&mut self, row: &RunRow) {
        match row.status == Status::Running {
            true => self.changed.remove(&row.id),
            false => self.changed.insert(row.id.clone()),
        };
    }

    /// Removes the endpoint of a deleted run.
    pub(super) fn remove_of_run(&mut self, run: &RunId) {
        let of_run = self.endpoints.values().find(|endpoint| endpoint.run.as_ref() == Some(run));
        if let Some(endpoint) = of_run.map(|endpoint| endpoint.id.clone()) {
            self.remove(&endpoint);
        }
    }

    pub(super) fn remove(&mut self, endpoint: &EndpointId) -> bool {
        self.deliveries.retain(|_, delivery| delivery.endpoint != *endpoint);
        self.endpoints.remove(endpoint).is_some()
    }
}
