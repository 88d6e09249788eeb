//! Waiting times of an execution that belong to no model call and to no tool call. Journaled for its spans; the state of a
//! run does not depend on them.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::ServerId;

/// A time that an execution waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    #[serde(flatten)]
    pub cause: WaitCause,
    /// When it began.
    pub since: Timestamp,
    /// Its duration in milliseconds.
    pub ms: u64,
}

/// The cause of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitCause {
    /// The admission queue: as many runs were active as the configuration allows.
    Admission,
    /// An MCP server that was started, connected, reconnected or listed.
    Server {
        server: ServerId,
        /// The part of the time until the connection was open, if one was opened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        connect_ms: Option<u64>,
        /// Why the server did not list its tools.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

impl Wait {
    /// The wait from `since` until `until`.
    pub fn new(since: Timestamp, until: Timestamp, cause: WaitCause) -> Self {
        Self { cause, since, ms: Self::ms(since, until) }
    }

    /// Whether a wait is long enough to be journaled: 10 ms.
    pub fn is_noticeable(since: Timestamp, until: Timestamp) -> bool {
        Self::ms(since, until) >= 10
    }

    /// The milliseconds from `since` until `until`.
    pub fn ms(since: Timestamp, until: Timestamp) -> u64 {
        u64::try_from(until.duration_since(since).as_millis()).unwrap_or_default()
    }

    /// The time of its end.
    pub fn until(&self) -> Timestamp {
        self.since.checked_add(Duration::from_millis(self.ms)).unwrap_or(self.since)
    }
}
