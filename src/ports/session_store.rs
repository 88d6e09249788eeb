//! Session store: one row for each conversation of successive runs, and the segments of the conversation.
//!
//! The append that creates a run claims its session: it moves the head to the run if the session is at the expected
//! version, and neither its head nor the predecessor of the run is live. Run, head and segment of the predecessor change
//! in one commit.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_core::chat::{Usage, Usd};
use toolgate_core::id::{AgentName, ModelName, Principal, RunId, ServerId, SessionId, Tenant};
use toolgate_core::policy::PolicyMark;
use toolgate_core::run::{Segment, Status, TighterLimits};

use super::{RunRow, StoreError};

/// A session: a conversation of successive runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    /// The session. Ids are unique within a tenant.
    pub id: SessionId,
    #[serde(default, skip_serializing_if = "Tenant::is_default")]
    pub tenant: Tenant,
    pub agent: AgentName,
    /// The principal that its runs act for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// Its latest run; `None` before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<SessionHead>,
    /// Grows by one with each change of the row.
    pub version: u64,
    /// The number of runs that were its head.
    pub runs: u64,
    /// Tokens and cost of the runs that were its head before, as far as they are known.
    #[serde(default, skip_serializing_if = "Usage::is_unknown")]
    pub usage: Usage,
    /// Turns of the runs that were its head before.
    #[serde(default)]
    pub iterations: u64,
    /// The configuration of its latest run; `None` before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<SessionRuntime>,
    /// Its title: the beginning of the first user message, or the caller's.
    pub title: String,
    /// The other members that callers set.
    #[serde(default)]
    pub settings: SessionSettings,
    /// The authenticated name of the caller who created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub authors: BTreeSet<String>,
    pub created_at: Timestamp,
    /// When a run last claimed it, or a caller changed it.
    pub updated_at: Timestamp,
    /// When it was deleted. Its id is not used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

/// What callers set for a session, besides its title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionSettings {
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The limits of its runs together.
    pub limits: SessionLimits,
    /// Seconds without use after which the next run begins afresh, in place of the agent's setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expire_after_s: Option<u64>,
    /// The permission mode of its runs: one of the agent's; `None` for the agent's policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// Limits of all runs of a session together. An absent one does not limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionLimits {
    /// Replies of models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// Input and output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<Usd>,
    /// Seconds since the session was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
}

impl From<SessionLimits> for TighterLimits {
    fn from(limits: SessionLimits) -> Self {
        let SessionLimits { max_iterations, max_tokens, max_cost_usd, deadline_s } = limits;
        Self { max_iterations, max_tokens, max_cost_usd, deadline_s, ..Self::default() }
    }
}

/// The configuration of a session's latest run, against which the next one is compared (FEATURES 0.06, 0.07, 0.28).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRuntime {
    /// The folder that the run worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The model that it asked first.
    pub model: ModelName,
    /// The MCP servers that it could use.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub servers: BTreeSet<ServerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyMark>,
}

/// The latest run of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHead {
    pub run: RunId,
    /// Its status, from its index row when the session is read. Stores ignore it in a write.
    pub status: Status,
    /// The length of its journal, likewise.
    pub version: u64,
    /// Its tokens and cost, likewise.
    #[serde(default, skip_serializing_if = "Usage::is_unknown")]
    pub usage: Usage,
    /// Its turns, likewise.
    #[serde(default)]
    pub iterations: u64,
    /// When its journal last grew, likewise: the session was last used then.
    pub updated_at: Timestamp,
}

impl SessionHead {
    /// The head of a session whose latest run is this one.
    pub fn from_run(run: RunRow) -> Self {
        Self {
            run: run.id,
            status: run.status,
            version: run.version,
            usage: run.usage,
            iterations: run.result.map_or(0, |result| result.iterations.into()),
            updated_at: run.updated_at,
        }
    }
}

impl SessionRow {
    /// Whether its head is running or pending.
    pub fn is_live(&self) -> bool {
        self.head.as_ref().is_some_and(|head| !head.status.is_ended())
    }

    /// Tokens and cost of all of its runs, as far as they are known.
    pub fn total_usage(&self) -> Usage {
        let mut usage = self.usage;
        self.head.iter().for_each(|head| usage.add(&head.usage));
        usage
    }

    /// Turns of all of its runs.
    pub fn total_iterations(&self) -> u64 {
        self.iterations + self.head.as_ref().map_or(0, |head| head.iterations)
    }

    /// When a run last used it: the last event of its head, or its creation.
    pub fn last_used_at(&self) -> Timestamp {
        self.head.as_ref().map_or(self.created_at, |head| head.updated_at)
    }
}

/// The claim of a session by a new run, with the run's first append.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionClaim {
    /// The version that was read; 0 creates the session.
    pub expected: u64,
    /// The row afterwards: its head is the run, and its version `expected + 1`.
    pub row: SessionRow,
    /// The segment of the run's predecessor. A store ignores it if it has one, or if the predecessor's
    /// content was deleted.
    pub segment: Option<Segment>,
}

/// A run of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainLink {
    pub run: RunId,
    /// Its segment. `None` if no run continued it, or its content was deleted.
    pub segment: Option<Segment>,
}

/// A filter of sessions that were not deleted; they are listed newest first.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only of this tenant.
    pub tenant: Tenant,
    /// Only of this agent.
    pub agent: Option<AgentName>,
    /// Only of this principal.
    pub principal: Option<Principal>,
    /// Only sessions older than this one: creation time and id.
    pub before: Option<(Timestamp, SessionId)>,
    /// The maximum number; 0 means 100.
    pub limit: usize,
}

impl SessionFilter {
    /// Whether a session matches.
    pub fn admits(&self, row: &SessionRow) -> bool {
        row.tenant == self.tenant
            && row.deleted_at.is_none()
            && self.agent.as_ref().is_none_or(|agent| row.agent == *agent)
            && self.principal.as_ref().is_none_or(|principal| row.principal.as_ref() == Some(principal))
            && self.before.as_ref().is_none_or(|(at, id)| (row.created_at, &row.id) < (*at, id))
    }
}

/// The result of a request to write a session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionSaved {
    Saved,
    /// It is at another version, deleted, or to be deleted with a live run, and nothing was written; `None`: there is no
    /// such session.
    Changed(Option<Box<SessionRow>>),
}

/// Sessions and segments. The run that claims a session is appended by
/// [`RunStore::append`](super::RunStore::append).
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// The session with this id, if there is one.
    async fn session(&self, tenant: &Tenant, id: &SessionId) -> Result<Option<SessionRow>, StoreError>;

    /// The sessions that match the filter, newest first by creation time, then by id.
    async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError>;

    /// Creates a session (`expected` 0), before its first run or for one that has ended, or replaces title, settings and
    /// the times of change and deletion, if its version is `expected`. Everything else in the row of an existing session
    /// stays. A deleted session does not change, and one with a live run is not deleted, whether the run is its head or
    /// not. With a session, a store that also stores grants and responses deletes the responses that quote it, and blanks
    /// the grants that were given for it.
    async fn save_session(&self, expected: u64, row: &SessionRow) -> Result<SessionSaved, StoreError>;

    /// The runs of the conversation that ends with this run of the tenant, oldest first, each with the number of messages of
    /// its segment; `None` if it has none. Reads no segment. A run that the tenant does not have in this store is the first
    /// one; it may have a segment.
    async fn segment_lengths(&self, tenant: &Tenant, run: &RunId) -> Result<Vec<(RunId, Option<u64>)>, StoreError>;

    /// The segments of these runs of the tenant, in any order; runs without one are omitted.
    async fn segments(&self, tenant: &Tenant, runs: &[RunId]) -> Result<Vec<(RunId, Segment)>, StoreError>;

    /// The same runs with their segments.
    async fn conversation(&self, tenant: &Tenant, run: &RunId) -> Result<Vec<ChainLink>, StoreError> {
        let runs: Vec<RunId> = self.segment_lengths(tenant, run).await?.into_iter().map(|(run, _)| run).collect();
        let mut segments: BTreeMap<RunId, Segment> = self.segments(tenant, &runs).await?.into_iter().collect();
        Ok(runs.into_iter().map(|run| ChainLink { segment: segments.remove(&run), run }).collect())
    }
}
