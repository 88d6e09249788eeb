//! The signed envelope: a pending run for callers who keep the state themselves. What is owed is shown to them, and the
//! token beside it brings the run back to life on a node that may never have seen it. Decision 0011 says what it is
//! bound to, what is hidden in it and why, and what it cannot prevent.

mod content;
mod error;
mod keys;
mod once;
mod passing;
mod token;

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use error::EnvelopeError;
pub use keys::{DEFAULT_LIFETIME, EnvelopeKey, EnvelopeKeys, KeyError, LEAST_SECRET_BYTES};
pub use token::{Claims, MOST_TOKEN_BYTES};

use once::Once;

use crate::core::chat::Message;
use crate::core::id::RunId;
use crate::core::json;
use crate::core::run::Debt;

/// The largest envelope that is read, in bytes: a token, and as much again that is shown.
pub const MOST_ENVELOPE_BYTES: usize = 2 * MOST_TOKEN_BYTES;

/// A pending run in the hands of its caller. It is given back exactly as it was; answers go beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Once")]
pub struct Envelope {
    /// The run.
    pub run_id: RunId,
    /// The conversation so far, the open turn included.
    pub messages: Vec<Arc<Message>>,
    /// What the run is owed.
    pub pending: Vec<Debt>,
    /// Turns with tools, and rejected answers.
    pub tool_interactions: u32,
    /// Vouches for the rest, and holds what else the run needs to go on.
    pub token: String,
    /// Until when it can be given back.
    pub expires_at: Timestamp,
}

impl Envelope {
    /// Reads an envelope. What is too large is not looked at.
    pub fn from_json(text: &[u8]) -> Result<Self, EnvelopeError> {
        if text.len() > MOST_ENVELOPE_BYTES {
            return Err(EnvelopeError::Oversized { most: MOST_ENVELOPE_BYTES });
        }
        let value: Once = serde_json::from_slice(text).map_err(|_| EnvelopeError::Malformed)?;
        Self::try_from(value)
    }

    /// The hash of everything but the token.
    fn shown(&self) -> String {
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
    /// Checks everything about an envelope that needs neither a store nor what is sealed in it.
    pub fn verify(&self, envelope: &Envelope, now: Timestamp) -> Result<Claims, EnvelopeError> {
        self.verified(envelope, now).map(|verified| verified.claims)
    }

    fn verified<'a>(&'a self, envelope: &'a Envelope, now: Timestamp) -> Result<token::Verified<'a>, EnvelopeError> {
        let verified = token::verify(self, &envelope.token)?;
        let claims = &verified.claims;
        if claims.run != envelope.run_id {
            return Err(EnvelopeError::AnotherRun);
        }
        if claims.shown != envelope.shown() {
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
    pending: Vec<Debt>,
    tool_interactions: u32,
    token: String,
    expires_at: Timestamp,
}

/// What we would not read must not be there: a person may have been shown it.
impl TryFrom<Once> for Envelope {
    type Error = EnvelopeError;

    fn try_from(Once(value): Once) -> Result<Self, EnvelopeError> {
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
