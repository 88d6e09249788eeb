//! Origin of a tool: the party that runs it.

use serde::{Deserialize, Serialize};

use crate::id::ServerId;

/// The party that runs a tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// toolgate calls an MCP server.
    Mcp {
        server: ServerId,
        /// The server's name for the tool.
        tool: String,
    },
    /// The calling application runs it; the run waits for its result.
    External {
        /// The caller's name for the tool.
        tool: String,
    },
    /// toolgate runs it itself.
    Builtin {
        /// The tool; also the name the model sees.
        tool: String,
    },
}

impl Origin {
    /// The name that the party has for the tool.
    pub fn tool_name(&self) -> &str {
        let (Self::Mcp { tool, .. } | Self::External { tool } | Self::Builtin { tool }) = self;
        tool
    }
}
