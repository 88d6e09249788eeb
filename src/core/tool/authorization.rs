//! Authorization status of MCP servers (FEATURES 0.31).

use serde::{Deserialize, Serialize};

use crate::id::ServerId;

/// Authorization at a server, according to the latest request that shows it. Never contains credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerAuthorization {
    pub server: ServerId,
    pub status: AuthorizationStatus,
    /// The cause and the remedy, unless the status is `authorized`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether a server grants access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorizationStatus {
    /// A user has to sign in, or an operator has to configure credentials.
    Required,
    /// The server accepted an access token.
    Authorized,
    /// No token could be obtained or renewed, or the server refuses the one that was issued.
    Failed,
}

impl AuthorizationStatus {
    /// The status in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Authorized => "authorized",
            Self::Failed => "failed",
        }
    }
}
