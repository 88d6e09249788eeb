//! Event log: the events of all journals of a store in one order, that in which they became visible. It lets a reader follow
//! all runs of a tenant, and resume at the same place in any process.

use async_trait::async_trait;
use toolgate_core::id::{AgentName, RunId, SessionId, Tenant};

use super::StoreError;

/// The place of an event in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its number among the events of all runs, from 1. Positions ascend; some are not used.
    pub position: u64,
    pub run: RunId,
    pub agent: AgentName,
    pub session: SessionId,
    /// Its position in the journal of its run.
    pub seq: u64,
    /// Whether it is the last event of its [`append`](super::RunStore::append).
    pub ends_append: bool,
}

/// A part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The events of the tenant, in order.
    pub events: Vec<LoggedEvent>,
    /// The tenant has no other event up to this position.
    pub read_to: u64,
}

/// The log of all events. An event is in it if, and as soon as, it is in the journal of its run, until the content of the
/// run is deleted.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// The events of a tenant after a position, up to a maximum number, which is not 0. A store may return fewer although there
    /// are more: the log is read when `read_to` is its [end](EventLog::last_position). After a page, no event appears up to
    /// its `read_to`.
    async fn logged(&self, tenant: &Tenant, after: u64, limit: usize) -> Result<LogPage, StoreError>;

    /// The position of the last event; 0 without one.
    async fn last_position(&self) -> Result<u64, StoreError>;

    /// The tenants that have events after a position, each with the position of its last event.
    async fn tenants_after(&self, position: u64) -> Result<Vec<(Tenant, u64)>, StoreError>;
}
