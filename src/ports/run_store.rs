//! Run store: the journals. There is one write operation, and its position is the compare-and-set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_core::chat::Usage;
use toolgate_core::id::{AgentName, NodeId, Principal, RunId, SessionId, Tenant};
use toolgate_core::run::{JournalEntry, PendingCounts, RunResult, Status, TriggerKind};

use super::{
    BlobStore, ClaimedSpans, EventLog, FeedbackStore, QuotaExceeded, SessionClaim, SessionRow, SessionStore, SpanClaim,
    SpanMark, StoreError,
};

/// Events to append to a run's journal.
#[derive(Clone, Debug)]
pub struct Append {
    pub run: RunId,
    /// The length the journal must have; 0 creates the run.
    pub at: u64,
    /// The events, consecutive from `at`.
    pub events: Vec<JournalEntry>,
    /// The index row after these events.
    pub row: RunRow,
    /// The writer. The store makes it the owner while the run is running, and removes the owner otherwise.
    /// `None`: the current owner keeps the run, and a run that becomes running is free to claim.
    pub owner: Option<NodeId>,
    /// The duration of the lease without renewal.
    pub lease: Duration,
    /// With the first events of a run in a session: the session's next head.
    pub session: Option<Box<SessionClaim>>,
    /// With the first events of a run whose spans the writer exports: its first [mark](super::SpanMark::sent). The writer
    /// gets the lease of its spans.
    pub spans_sent: Option<u64>,
    /// Whether the run comes from another store, with its past: no quota refuses it, and its past is not counted again.
    pub is_import: bool,
}

/// The index row of a run, for listings; derived from its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    pub id: RunId,
    pub agent: AgentName,
    #[serde(rename = "session_id", alias = "session")]
    pub session: SessionId,
    /// The run whose conversation it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<RunId>,
    /// What started it; `None` if its first event was deleted before rows had triggers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<TriggerKind>,
    /// The schedule that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    #[serde(default, skip_serializing_if = "Tenant::is_default")]
    pub tenant: Tenant,
    /// The principal on whose behalf it acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The caller's own data about it, until its content is deleted. A store takes it from the first append, and ignores
    /// it in later ones.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    pub status: Status,
    /// The length of its journal.
    pub version: u64,
    /// The beginning of the user's message.
    pub title: String,
    /// When the first event was written.
    pub created_at: Timestamp,
    /// When the last event was written.
    pub updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "PendingCounts::is_empty")]
    pub pending_counts: PendingCounts,
    /// Its tokens and cost, as far as they are known.
    #[serde(default, skip_serializing_if = "Usage::is_unknown")]
    pub usage: Usage,
    /// Its result so far; `None` for a run of an earlier version of toolgate.
    #[serde(flatten)]
    pub result: Option<RunResult>,
    /// Whether it is running and no process executes it: its process has died. Not part of the row that a store keeps; a
    /// list of the runner sets it.
    #[serde(default, rename = "interrupted", skip_serializing_if = "std::ops::Not::not")]
    pub is_interrupted: bool,
    /// When its content was deleted. Only this row is left then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purged_at: Option<Timestamp>,
}

impl RunRow {
    /// The word of lists for a run that is running while no process executes it.
    pub const INTERRUPTED: &str = "interrupted";

    /// The status as lists show it: [`Self::INTERRUPTED`], or the status itself.
    pub fn status_word(&self) -> &'static str {
        if self.is_interrupted { Self::INTERRUPTED } else { self.status.as_str() }
    }

    /// The title, or in brackets what started a run without a message.
    pub fn title_or_trigger(&self) -> String {
        match self.trigger {
            Some(trigger) if self.title.is_empty() && self.purged_at.is_none() => format!("({})", trigger.as_str()),
            Some(_) | None => self.title.clone(),
        }
    }

    /// Whether the run is a compaction that replaced nothing: it completed without a reply of a model.
    pub fn is_ineffective_compaction(&self) -> bool {
        let has_reply = self.result.as_ref().is_none_or(|result| !result.models.is_empty());
        self.trigger == Some(TriggerKind::Compaction) && self.status == Status::Completed && !has_reply
    }
}

/// A filter of runs, and the order of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFilter {
    /// Only this run.
    pub run: Option<RunId>,
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only with one of these statuses, if there are any.
    pub statuses: Vec<Status>,
    /// Only of this agent.
    pub agent: Option<AgentName>,
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only those with such a trigger.
    pub trigger: Option<TriggerKind>,
    /// Only those that this schedule started.
    pub schedule: Option<String>,
    /// Only on behalf of this principal.
    pub principal: Option<Principal>,
    /// Only those whose metadata has all of these members.
    pub metadata: BTreeMap<String, MetadataValue>,
    /// Only those whose title contains this text, whatever the case of its ASCII letters.
    pub title: Option<String>,
    /// Only those that were created at this time or later.
    pub created_from: Option<Timestamp>,
    /// Only those that were created before this time.
    pub created_before: Option<Timestamp>,
    /// Only those with a pending item of this kind.
    pub pending_kind: Option<PendingKind>,
    /// Only those with a deadline up to that time.
    pub due_by: Option<Timestamp>,
    /// Also those whose content was deleted.
    pub purged: bool,
    /// Only runs older than this one (ids sort by creation).
    pub before: Option<RunId>,
    /// Only runs newer than this one.
    pub after: Option<RunId>,
    pub order: ListOrder,
    /// The maximum number; 0 means 100.
    pub limit: usize,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListOrder {
    #[default]
    NewestFirst,
    OldestFirst,
}

/// A member of metadata that a filter compares with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataValue {
    Text(String),
    Integer(i64),
    Bool(bool),
}

impl MetadataValue {
    fn equals(&self, value: &Value) -> bool {
        match self {
            Self::Text(text) => value.as_str() == Some(text),
            Self::Integer(number) => value.as_i64() == Some(*number),
            Self::Bool(flag) => value.as_bool() == Some(*flag),
        }
    }
}

/// A kind of pending item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingKind {
    /// A required approval.
    Approval,
    Task,
}

impl RunFilter {
    /// Whether a run matches.
    pub fn admits(&self, row: &RunRow) -> bool {
        self.run.as_ref().is_none_or(|run| row.id == *run)
            && self.tenant.as_ref().is_none_or(|tenant| row.tenant == *tenant)
            && (self.statuses.is_empty() || self.statuses.contains(&row.status))
            && self.agent.as_ref().is_none_or(|agent| row.agent == *agent)
            && self.session.as_ref().is_none_or(|session| row.session == *session)
            && self.trigger.is_none_or(|trigger| row.trigger == Some(trigger))
            && self.schedule.as_ref().is_none_or(|schedule| row.schedule.as_ref() == Some(schedule))
            && self.principal.as_ref().is_none_or(|principal| row.principal.as_ref() == Some(principal))
            && self.metadata.iter().all(|(name, value)| row.metadata.get(name).is_some_and(|own| value.equals(own)))
            && self.title.as_ref().is_none_or(|text| contains_ignoring_case(&row.title, text))
            && self.created_from.is_none_or(|from| row.created_at >= from)
            && self.created_before.is_none_or(|before| row.created_at < before)
            && self.pending_kind.is_none_or(|pending_kind| pending_kind.is_in(&row.pending_counts))
            && self.due_by.is_none_or(|by| row.pending_counts.due_at.is_some_and(|due| due <= by))
            && (self.purged || row.purged_at.is_none())
            && self.before.as_ref().is_none_or(|before| row.id < *before)
            && self.after.as_ref().is_none_or(|after| row.id > *after)
    }
}

fn contains_ignoring_case(text: &str, part: &str) -> bool {
    text.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
}

impl PendingKind {
    fn is_in(self, pending_counts: &PendingCounts) -> bool {
        match self {
            Self::Approval => pending_counts.approvals > 0,
            Self::Task => pending_counts.tasks > 0,
        }
    }
}

/// The position of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPosition {
    pub run: RunId,
    /// The length of its journal.
    pub version: u64,
    /// Whether its content was deleted.
    pub is_purged: bool,
}

/// The result of a request to delete the content of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// The content is deleted, since then; perhaps by an earlier request.
    Since(Timestamp),
    /// Nothing was deleted: the run is not over, its journal has another length, or there is no such run.
    No,
}

/// A request to claim running runs without a live owner.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The new owner.
    pub owner: NodeId,
    /// Only this run; otherwise any.
    pub run: Option<RunId>,
    /// The duration of the lease without renewal.
    pub lease: Duration,
    /// The maximum number.
    pub limit: usize,
}

/// The reason why an append was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The journal is not `at` long; its actual length is given.
    #[error("the journal has {length} events")]
    Conflict { length: u64 },
    /// Another owner holds an unexpired lease.
    #[error("{0} executes the run")]
    Owned(NodeId),
    /// The session is at another version or deleted, or its head or the run's predecessor is live. Its current row is
    /// given.
    #[error("the session changed")]
    SessionChanged {
        /// Its row; `None` if there is no such session.
        current: Option<Box<SessionRow>>,
    },
    /// The tenant or the caller of a new run has used up a [quota](super::Quotas).
    #[error(transparent)]
    OverQuota(Box<QuotaExceeded>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The journals of all runs. Atomic: a refused append changes nothing.
#[async_trait]
pub trait RunStore: SessionStore + EventLog + FeedbackStore {
    /// Appends if the journal is exactly `at` long. Durable on return. No run begins in a deleted session, whether it
    /// claims it or not, and none beyond a quota. Usage of runs with a caller is [counted](super::UsageCounters) in the same
    /// commit.
    async fn append(&self, append: Append) -> Result<(), AppendError>;

    /// The events from position `from` on; empty if there are no such events, or no such run.
    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, StoreError>;

    /// The index rows that match the filter, in its order.
    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError>;

    /// Claims running runs that have no owner, or whose owner's lease has expired, oldest first. A run that the
    /// claimant already owns is returned again when it is named.
    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError>;

    /// Lists orphaned runs, oldest first, up to a maximum number: they are running and have no owner, or the lease of
    /// their owner has expired. [`claim`](Self::claim) would claim the same runs. Writes nothing.
    async fn orphaned(&self, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// Renews that owner's leases of these runs. Leases of other runs expire: a live owner that has released a run must
    /// not keep it from others.
    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError>;

    /// When another node than this one, as the owner of a running run, last renewed its lease, of that duration: until then
    /// its process was alive. `None` if the run has no such owner, or the store does not know.
    async fn last_renewal(
        &self,
        _run: &RunId,
        _node: &NodeId,
        _lease: Duration,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    /// Claims the lease of a run's spans.
    async fn claim_spans(&self, _claim: &SpanClaim) -> Result<ClaimedSpans, StoreError> {
        Ok(ClaimedSpans::Unmarked)
    }

    /// Moves the marks of these runs, never back, and their leases. A run without a mark gets one.
    async fn mark_spans(&self, _marks: &[SpanMark]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Lists runs that are idle or have ended, whose mark is not the end of their journal, and the lease of whose spans has
    /// expired: oldest first, those after `after`, up to a maximum number.
    async fn unsent_spans(&self, _after: Option<&RunId>, _limit: usize) -> Result<Vec<RunId>, StoreError> {
        Ok(Vec::new())
    }

    /// Deletes the journal of a run that is over and exactly `at` long, permanently. Its index row stays, without the
    /// title and the summary, and with the time. Its segment is deleted too, so that later runs of its session no longer
    /// read it, and so is the conversation before it, if the store does not have the runs of it and no other run
    /// continues it. The session has another version if the run is its head or its title quotes the run, and no title in
    /// the latter case. A repetition changes nothing. A store that also stores grants and responses deletes the responses
    /// that quote the run, and blanks the grants that were given with a call of it. Feedback on the run is deleted. Nothing is
    /// ever appended to the journal again.
    async fn purge(&self, run: &RunId, at: u64, now: Timestamp) -> Result<Purged, StoreError>;

    /// The positions of these runs, in any order; those that do not exist are omitted.
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

    /// Whether it can be read at this moment. Concurrent listings do not delay the answer.
    async fn check_read(&self) -> Result<(), StoreError> {
        // No run has this id: the query is cheap.
        let nothing = RunFilter { run: Some("run_".into()), limit: 1, ..RunFilter::default() };
        self.list(&nothing).await.map(drop)
    }

    /// Whether it can be written. The answer may be a few seconds old.
    async fn check_write(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The same store as a blob store, if it is one.
    fn blobs(self: Arc<Self>) -> Option<Arc<dyn BlobStore>> {
        None
    }
}
