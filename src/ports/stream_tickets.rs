//! Stream tickets: short-lived permissions to open one event stream, for clients that cannot send headers.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_core::id::{RunId, SessionId};

use super::{KeyHash, StoreError};

/// A ticket: everything but its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamTicket {
    /// The stream that it opens.
    pub stream: TicketedStream,
    /// The credentials of its creator, encrypted with a key that only the secret yields. Empty if there were none.
    pub sealed_credentials: Vec<u8>,
    pub expires_at: Timestamp,
}

/// A stream that a ticket opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TicketedStream {
    /// The events of a run.
    Run(RunId),
    /// Those events of the tenant that are of a session.
    Session(SessionId),
    /// The events of the tenant.
    Events,
    /// The events of the approvals inbox.
    Approvals,
}

/// The store of tickets. Expired tickets are deleted gradually, whenever a new one is added.
#[async_trait]
pub trait StreamTickets: Send + Sync {
    /// Stores a ticket under the hash of its secret.
    async fn put_ticket(&self, hash: &KeyHash, ticket: &StreamTicket, now: Timestamp) -> Result<(), StoreError>;

    /// The ticket whose secret has this hash, whether it has expired or not.
    async fn ticket(&self, hash: &KeyHash) -> Result<Option<StreamTicket>, StoreError>;
}
