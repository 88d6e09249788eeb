//! On whose behalf: credentials that act for one principal change only runs that act for it as well. What they may read,
//! and decide about, is the tenant's: those who decide need not be those for whom a run acts.

use super::TenantRun;
use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;

impl TenantRun {
    /// Refuses whoever acts for somebody else than the run does.
    pub(super) async fn require_same_principal(&self) -> Result<(), Problem> {
        let Some(own) = &self.caller.principal else { return Ok(()) };
        // What was deleted says nothing any more, and cannot be changed either.
        if self.row.purged_at.is_some() || self.started().await?.spec.principal.as_ref() == Some(own) {
            return Ok(());
        }
        let detail = format!(
            "these credentials act for `{own}`, and this run does not: they may read it and decide about its calls"
        );
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }
}
