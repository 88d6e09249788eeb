//! MCP tasks: calls that a server continues in the background, to be polled later (MCP extension
//! `io.modelcontextprotocol/tasks`).

use serde::{Deserialize, Serialize};

/// A task at a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskHandle {
    /// The server's id of the task.
    pub id: String,
    /// The server's status message, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The poll interval that the server requests, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_ms: Option<u64>,
    /// The time for which the server keeps the task after its creation, in milliseconds; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}
