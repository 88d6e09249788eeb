//! Principals: credentials with a principal can only change runs and sessions of that principal. They can read all of
//! the tenant, and decide approvals: an approver need not have the principal of the run.

use toolgate_core::error::ErrorCode;
use toolgate_core::id::Principal;

use super::Caller;
use crate::error::ServiceError;
use crate::error_reason::ErrorReason;
use crate::runs::TenantRun;
use crate::sessions::TenantSession;

impl Caller {
    /// The principal of a new run or session: the caller's own, or else the requested one.
    pub(crate) fn principal_of(&self, requested: Option<Principal>) -> Result<Option<Principal>, ServiceError> {
        if let (Some(own), Some(other)) = (&self.principal, &requested)
            && own != other
        {
            let detail = format!("these credentials can only act for `{own}`");
            return Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::OtherPrincipal));
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
        Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::OtherPrincipal))
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
                Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::OtherPrincipal))
            }
            Some(_) | None => Ok(()),
        }
    }
}
