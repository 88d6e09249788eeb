//! Omitted tools and servers.

use serde::{Deserialize, Serialize};

use crate::id::ServerId;

/// A tool or server that is not available to the model, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The server, for MCP tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerId>,
    /// The tool; `None` when the whole server, or a part of its list, is missing.
    #[serde(default, rename = "name", alias = "tool", skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The cause and the remedy.
    pub reason: String,
}
