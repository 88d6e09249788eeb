//! Waiting time for an MCP server outside of tool calls. Journaled for the spans of the execution; the state of a run does
//! not depend on it.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::ServerId;

/// A time that an execution waited for a server that was started, connected, reconnected or listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerWait {
    pub server: ServerId,
    /// When it began.
    pub since: Timestamp,
    /// Its duration in milliseconds.
    pub ms: u64,
    /// The part of the time until the connection was open, if one was opened, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<u64>,
    /// Why the server did not list its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ServerWait {
    /// The time of its end.
    pub fn until(&self) -> Timestamp {
        self.since.checked_add(Duration::from_millis(self.ms)).unwrap_or(self.since)
    }
}
