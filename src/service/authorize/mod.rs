//! Authorization: what an authenticated caller may do in its tenant.

mod four_eyes;
mod scopes;

use std::sync::Arc;

pub use scopes::{Scope, Scopes};
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{Principal, Tenant};

use crate::error::ServiceError;
use crate::runs::TenantRun;
use crate::sessions::TenantSession;

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The tenant whose resources the caller sees.
    pub tenant: Tenant,
    /// The caller's name in journals: `key:ci`, `user:ann`. Never a secret.
    pub name: Arc<str>,
    /// The principal on whose behalf all runs of the caller act. `None`: the caller names one for each run.
    pub principal: Option<Principal>,
    /// What the caller may do.
    pub scopes: Scopes,
}

impl Caller {
    /// A caller with every scope, for a program with only one tenant.
    pub fn local() -> Self {
        Self { tenant: Tenant::default(), name: "local".into(), principal: None, scopes: Scopes::all() }
    }

    /// Refuses a caller without this scope.
    pub fn require(&self, scope: Scope) -> Result<(), ServiceError> {
        if self.scopes.contains(scope) {
            return Ok(());
        }
        let detail = format!("these credentials lack the scope `{}`", scope.as_str());
        Err(ServiceError::new(ErrorCode::Forbidden, detail))
    }
}

impl Caller {
    /// The principal of a new run or session: the caller's own, or else the requested one.
    pub(crate) fn principal_of(&self, requested: Option<Principal>) -> Result<Option<Principal>, ServiceError> {
        if let (Some(own), Some(other)) = (&self.principal, &requested)
            && own != other
        {
            let detail = format!("these credentials can only act for `{own}`");
            return Err(ServiceError::new(ErrorCode::Forbidden, detail));
        }
        Ok(self.principal.clone().or(requested))
    }
}

impl TenantRun {
    /// Refuses a caller whose principal is not that of the run.
    pub(crate) async fn require_same_principal(&self) -> Result<(), ServiceError> {
        let Some(own) = &self.caller.principal else { return Ok(()) };
        // A deleted run has no principal any more, and cannot be changed either.
        if self.row.purged_at.is_some() || self.started().await?.spec.principal.as_ref() == Some(own) {
            return Ok(());
        }
        let detail = format!(
            "these credentials act for `{own}`, and this run does not: they may read it and decide about its calls"
        );
        Err(ServiceError::new(ErrorCode::Forbidden, detail))
    }
}

impl TenantSession {
    /// Refuses a caller whose principal is not that of the session.
    pub(crate) fn require_same_principal(&self) -> Result<(), ServiceError> {
        match &self.caller.principal {
            Some(own) if self.row.principal.as_ref() != Some(own) => {
                let detail = format!(
                    "these credentials act for `{own}`, and this session does not: they may read it and decide about \
                     its calls"
                );
                Err(ServiceError::new(ErrorCode::Forbidden, detail))
            }
            Some(_) | None => Ok(()),
        }
    }
}
