//! Scopes: what a caller may do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A permission of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub enum Scope {
    /// Read runs and sessions, their events and messages, and uploaded files.
    #[serde(rename = "runs:read")]
    RunsRead,
    /// Start, resume, cancel, fork, retry and delete runs, and give feedback on them; create, change and delete sessions; upload
    /// and delete files.
    #[serde(rename = "runs:write")]
    RunsWrite,
    /// Read agents, models, tools and servers.
    #[serde(rename = "tools:read")]
    ToolsRead,
    /// Call a tool without a run.
    #[serde(rename = "tools:call")]
    ToolsCall,
    /// Read pending approvals and grants.
    #[serde(rename = "approvals:read")]
    ApprovalsRead,
    /// Decide approvals, extend their deadlines, create and revoke grants.
    #[serde(rename = "approvals:decide")]
    ApprovalsDecide,
    /// Read and change the tenant's webhook endpoints.
    #[serde(rename = "webhooks")]
    Webhooks,
    /// Manage keys, and servers that all tenants share.
    #[serde(rename = "admin")]
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 8] = [
        Self::RunsRead,
        Self::RunsWrite,
        Self::ToolsRead,
        Self::ToolsCall,
        Self::ApprovalsRead,
        Self::ApprovalsDecide,
        Self::Webhooks,
        Self::Admin,
    ];

    /// The scope's name in keys and configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunsRead => "runs:read",
            Self::RunsWrite => "runs:write",
            Self::ToolsRead => "tools:read",
            Self::ToolsCall => "tools:call",
            Self::ApprovalsRead => "approvals:read",
            Self::ApprovalsDecide => "approvals:decide",
            Self::Webhooks => "webhooks",
            Self::Admin => "admin",
        }
    }

    /// The scope of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of scopes. No scope implies another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u16);

impl Scopes {
    /// Whether the set contains this scope.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Each scope of the set.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    /// Every scope.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}
