//! A call that a server goes on with by itself, to be asked about later (MCP extension `io.modelcontextprotocol/tasks`).

use serde::{Deserialize, Serialize};

/// A task at a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskHandle {
    /// The server's id of it.
    pub id: String,
    /// What the server says of it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long to wait before it is asked about, in milliseconds, if the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_ms: Option<u64>,
    /// How long the server keeps it from its creation, in milliseconds; `None` if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}
