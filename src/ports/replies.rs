//! What was answered to requests that bring an idempotency key, so that asking again is not doing again.
//!
//! The order is the caller's duty: a request is noted before it is handled, and its answer before it is sent. What is noted
//! and has no answer was cut off by the end of a process, or is still being handled: whoever handles it says so by holding it.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::core::id::{RunId, Tenant};

/// The largest body that is kept: 1 MiB.
pub const MAX_REPLY_BYTES: usize = 1024 * 1024;

/// A request that is not to be handled twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whose request it is.
    pub tenant: Tenant,
    /// Who asks, as journals call them.
    pub caller: String,
    /// The key they chose for it.
    pub key: String,
    /// Hash of what is asked, and of what whoever asks may do.
    pub fingerprint: String,
    /// The id that the run is to have which the request starts.
    pub run: Option<RunId>,
    /// Until when somebody is certainly at work on it, unless they say more.
    pub held_until: Timestamp,
    /// Until when it is remembered.
    pub expires_at: Timestamp,
}

/// What is known of a request that was asked before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Hash of what was asked, and of what whoever asked might do.
    pub fingerprint: String,
    /// The id of the run that it starts.
    pub run: Option<RunId>,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is being handled, or was when whoever handled it was last heard of.
    UnderWay {
        /// Until when somebody is certainly at work on it.
        held_until: Timestamp,
    },
    /// It was answered.
    Answered(Reply),
    /// It was answered with something that is not kept: a secret, a stream, or too much.
    Unkept,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The run that it quotes, and goes with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The headers that belong to what is answered.
    pub headers: Vec<(String, String)>,
    /// The body, at most [`MAX_REPLY_BYTES`].
    #[serde(skip)]
    pub body: Vec<u8>,
}

/// The memory of answers. What has expired is forgotten little by little, whenever something new is noted.
#[async_trait]
pub trait Replies: Send + Sync {
    /// Notes a request, unless one with its key is remembered: then that one is returned, and nothing changes.
    async fn begin(&self, asked: &Asked, now: Timestamp) -> Result<Option<Begun>, StoreError>;

    /// Says until when somebody is at work on it. Changes nothing once it is settled.
    async fn prolong(&self, asked: &Asked, until: Timestamp) -> Result<(), StoreError>;

    /// Takes on one that nobody is at work on any more by `now`: it is held until [`Asked::held_until`]. `false` if somebody
    /// is, because they were first, or if it is settled or forgotten; then nothing changes.
    async fn take_over(&self, asked: &Asked, now: Timestamp) -> Result<bool, StoreError>;

    /// Says what became of it. A store that keeps journals as well makes an answer [`Fate::Unkept`] when it purges the run that
    /// the answer quotes.
    async fn settle(&self, asked: &Asked, fate: &Fate) -> Result<(), StoreError>;

    /// Forgets it: nothing was done, and the same request may be made again.
    async fn forget(&self, asked: &Asked) -> Result<(), StoreError>;
}
