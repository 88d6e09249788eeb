//! Authorization: what an authenticated caller may do in its tenant.

mod four_eyes;
mod principal;
mod scopes;

use std::sync::Arc;

pub use scopes::{Scope, Scopes};
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{Principal, Tenant};
use toolgate_core::run::Started;

use crate::error::ServiceError;
use crate::error_reason::ErrorReason;

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

    /// Whether the caller started the run, or one that it was forked from, or has the run's principal.
    pub(crate) fn is_author_of(&self, started: &Started) -> bool {
        let acts_for_them = self.principal.is_some() && self.principal == started.spec.principal;
        acts_for_them || started.authors().contains(&*self.name)
    }

    /// Refuses a caller without this scope.
    pub fn require(&self, scope: Scope) -> Result<(), ServiceError> {
        if self.scopes.contains(scope) {
            return Ok(());
        }
        let detail = format!("these credentials lack the scope `{}`", scope.as_str());
        Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::ScopeMissing))
    }
}
