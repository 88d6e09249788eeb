//! Whoever asks: whose they are, what they are called, what they may do.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::core::error::ErrorCode;
use crate::core::id::{Principal, Tenant};
use crate::gateway::problem::Problem;

/// Somebody who was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Whose things they see.
    pub tenant: Tenant,
    /// What journals call them: `key:ci`, `user:ann`. Never a secret.
    pub name: Arc<str>,
    /// On whose behalf all their runs act. `None`: they say so themselves, run by run.
    pub principal: Option<Principal>,
    /// What they may do.
    pub scopes: Scopes,
}

/// What one may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub enum Scope {
    /// Read runs, their events and messages.
    #[serde(rename = "runs:read")]
    RunsRead,
    /// Start, resume, cancel, fork and delete runs.
    #[serde(rename = "runs:write")]
    RunsWrite,
    /// See agents, models, tools and servers.
    #[serde(rename = "tools:read")]
    ToolsRead,
    /// Call a tool without a run.
    #[serde(rename = "tools:call")]
    ToolsCall,
    /// See what waits for a decision, and standing approvals.
    #[serde(rename = "approvals:read")]
    ApprovalsRead,
    /// Decide, give more time, give and take back standing approvals.
    #[serde(rename = "approvals:decide")]
    ApprovalsDecide,
    /// See and change where the tenant's webhooks go.
    #[serde(rename = "webhooks")]
    Webhooks,
    /// Keys, and servers that all tenants share.
    #[serde(rename = "admin")]
    Admin,
}

impl Scope {
    /// Every scope there is.
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

    /// As keys and configurations write it.
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

/// A set of scopes. None implies another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u16);

impl Scopes {
    /// Whether this one is among them.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    /// All there are.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl Caller {
    /// Somebody with every scope, for the one tenant of a program that has no others.
    pub fn local() -> Self {
        Self { tenant: Tenant::default(), name: "local".into(), principal: None, scopes: Scopes::all() }
    }

    /// Refuses what they may not do.
    pub(in crate::gateway) fn require(&self, scope: Scope) -> Result<(), Problem> {
        if self.scopes.contains(scope) {
            return Ok(());
        }
        let detail = format!("these credentials lack the scope `{}`", scope.as_str());
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }
}

/// Handlers take it as a parameter. It is always there: nobody reaches a handler without having been let in.
impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::new(ErrorCode::Internal, "the request was not let in by anybody"))
    }
}
