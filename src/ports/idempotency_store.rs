//! Idempotency store: the responses to requests with an idempotency key, so that a repeated request has no second
//! effect.
//!
//! The caller keeps the order: a request is recorded before it is handled, and its response before it is sent. A
//! recorded request without a response was cut off by the end of a process, or is still being handled: its handler
//! extends the hold.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_core::id::{FileId, RunId, SessionId, Tenant};

use super::StoreError;

/// The largest stored body: 1 MiB.
pub const MAX_REPLY_BYTES: usize = 1024 * 1024;

/// A request that must be handled only once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentRequest {
    pub tenant: Tenant,
    /// The caller, as journals name them.
    pub caller: String,
    /// The idempotency key of the caller.
    pub key: String,
    /// Hash of the request, and of the caller's permissions.
    pub fingerprint: String,
    /// The id of the run that the request starts.
    pub run: Option<RunId>,
    /// Until when its handler is certainly active, unless it extends the hold.
    pub held_until: Timestamp,
    /// When the record expires.
    pub expires_at: Timestamp,
}

/// The record of an earlier request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// Hash of the request, and of the caller's permissions.
    pub fingerprint: String,
    /// The id of the run that it starts.
    pub run: Option<RunId>,
    pub state: RequestState,
}

/// The state of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// It is being handled, or was when its handler last extended the hold.
    UnderWay {
        /// Until when its handler is certainly active.
        held_until: Timestamp,
    },
    Answered(StoredResponse),
    /// It was answered with a response that is not stored: a secret, a stream, or too much.
    NotStored,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The run that it quotes; the response is deleted with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The session that it quotes; the response is deleted with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The file that it quotes; the response is deleted with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileId>,
    pub headers: Vec<(String, String)>,
    /// The body, at most [`MAX_REPLY_BYTES`].
    #[serde(skip)]
    pub body: Vec<u8>,
}

/// The store of responses. Expired records are deleted gradually, whenever a new one is added.
#[async_trait]
pub trait IdempotencyStore: Send + Sync {
    /// Records a request, unless there is a record with its key: then returns that one, and changes nothing.
    async fn begin(&self, request: &IdempotentRequest, now: Timestamp)
    -> Result<Option<IdempotencyRecord>, StoreError>;

    /// Extends the hold. Changes nothing once the request is settled.
    async fn prolong(&self, request: &IdempotentRequest, until: Timestamp) -> Result<(), StoreError>;

    /// Claims a request whose hold is over at `now`, and holds it until [`IdempotentRequest::held_until`]. `false` if it is held,
    /// because another handler was first, or if it is settled or deleted; then nothing changes.
    async fn take_over(&self, request: &IdempotentRequest, now: Timestamp) -> Result<bool, StoreError>;

    /// Records the final state. A store that also stores journals changes an answer to [`RequestState::NotStored`] when it purges
    /// the run that the answer quotes, or deletes the session or the file.
    async fn settle(&self, request: &IdempotentRequest, state: &RequestState) -> Result<(), StoreError>;

    /// Deletes the record: the request had no effect, and may be repeated.
    async fn forget(&self, request: &IdempotentRequest) -> Result<(), StoreError>;
}
