//! Principals: credentials with a principal can only change runs of that principal. They can read all runs of the
//! tenant, and decide approvals: an approver need not have the principal of the run.

use toolgate_core::error::ErrorCode;

use crate::error::ServiceError;
use crate::runs::TenantRun;

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
