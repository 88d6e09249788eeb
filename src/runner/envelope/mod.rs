//! Signed envelope: a pending run for callers that keep the state themselves. It shows the pending items, and its token
//! restores the run on a node that may never have stored it. Decision 0011 describes what the token is bound to, what
//! it hides and why, and what it cannot prevent.

mod content;
mod error;
mod keys;
mod token;
mod transfer;

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use error::EnvelopeError;
pub use keys::{DEFAULT_LIFETIME, EnvelopeKey, EnvelopeKeys, KeyError, LEAST_SECRET_BYTES};
pub use token::{Claims, MOST_TOKEN_BYTES};

use toolgate_core::chat::Message;
use toolgate_core::id::RunId;
use toolgate_core::json;
use toolgate_core::run::PendingItem;
use toolgate_core::unique_members::UniqueMembers;

/// The maximum size of an envelope, in bytes: a token, and as much visible content.
pub const MOST_ENVELOPE_BYTES: usize = 2 * MOST_TOKEN_BYTES;

/// A pending run that the caller keeps. The caller sends it back unchanged, with the answers next to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UniqueMembers")]
pub struct Envelope {
    pub run_id: RunId,
    /// The conversation so far, including the open turn.
    pub messages: Vec<Arc<Message>>,
    pub pending: Vec<PendingItem>,
    /// Turns with tools, and rejected answers.
    pub tool_interactions: u32,
    /// Authenticates the other members, and contains the rest of the run's state.
    pub token: String,
    /// The expiry time.
    pub expires_at: Timestamp,
}

impl Envelope {
    /// Parses an envelope. An input that is too large is not parsed.
    pub fn from_json(text: &[u8]) -> Result<Self, EnvelopeError> {
        if text.len() > MOST_ENVELOPE_BYTES {
            return Err(EnvelopeError::Oversized { most: MOST_ENVELOPE_BYTES });
        }
        let value: UniqueMembers = serde_json::from_slice(text).map_err(|_| EnvelopeError::Malformed)?;
        Self::try_from(value)
    }

    /// The hash of everything but the token.
    fn content_hash(&self) -> String {
        json::hash(&json!({
            "run_id": self.run_id,
            "messages": self.messages,
            "pending": self.pending,
            "tool_interactions": self.tool_interactions,
            "expires_at": self.expires_at,
        }))
    }
}

impl EnvelopeKeys {
    /// Verifies everything about an envelope that needs neither a store nor the sealed content.
    pub fn verify(&self, envelope: &Envelope, now: Timestamp) -> Result<Claims, EnvelopeError> {
        self.verified(envelope, now).map(|verified| verified.claims)
    }

    fn verified<'a>(
        &'a self,
        envelope: &'a Envelope,
        now: Timestamp,
    ) -> Result<token::VerifiedToken<'a>, EnvelopeError> {
        let verified = token::verify(self, &envelope.token)?;
        let claims = &verified.claims;
        if claims.run != envelope.run_id {
            return Err(EnvelopeError::AnotherRun);
        }
        if claims.shown != envelope.content_hash() {
            return Err(EnvelopeError::Altered);
        }
        match claims.expires_at {
            at if at <= now => Err(EnvelopeError::Expired { at }),
            _ => Ok(verified),
        }
    }
}

/// The members of an envelope.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    run_id: RunId,
    messages: Vec<Arc<Message>>,
    pending: Vec<PendingItem>,
    tool_interactions: u32,
    token: String,
    expires_at: Timestamp,
}

/// An unknown member is an error, because a user may have seen it.
impl TryFrom<UniqueMembers> for Envelope {
    type Error = EnvelopeError;

    fn try_from(UniqueMembers(value): UniqueMembers) -> Result<Self, EnvelopeError> {
        let members = Members::deserialize(&value).map_err(|_| EnvelopeError::Malformed)?;
        let Members { run_id, messages, pending, tool_interactions, token, expires_at } = members;
        let envelope = Self { run_id, messages, pending, tool_interactions, token, expires_at };
        let read = serde_json::to_value(&envelope).map_err(|_| EnvelopeError::Malformed)?;
        match json::canonical(&read) == json::canonical(&value) {
            true => Ok(envelope),
            false => Err(EnvelopeError::Altered),
        }
    }
}
