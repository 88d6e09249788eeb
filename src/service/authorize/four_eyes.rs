//! Four eyes: the caller who starts a run may not approve its calls. Each caller with the scope may deny. A caller who may
//! approve calls of a run may not influence them either, by messages or by edited arguments.

use toolgate_core::error::ErrorCode;
use toolgate_core::id::Principal;
use toolgate_core::run::{Decision, DecisionKind, Resume, Scope};

use super::Caller;
use super::scopes;
use crate::error::ServiceError;
use crate::error_reason::ErrorReason;
use crate::runs::{TenantRun, TenantRunner};

impl TenantRun {
    /// Refuses an approval from the caller who started the run, and a wider approval that would cover runs its approver
    /// may start.
    pub(crate) async fn require_four_eyes(&self, resume: &Resume) -> Result<(), ServiceError> {
        let decisions = resume.decisions().map(|(_, decision)| decision);
        let approved: Vec<&Decision> = decisions.filter(|decision| decision.answer == DecisionKind::Approve).collect();
        if !self.four_eyes || approved.is_empty() {
            return Ok(());
        }
        if approved.iter().any(|decision| decision.edited_arguments.is_some()) {
            let detail = "no second person would see a call with your own arguments (four eyes); deny it and say \
                          why, and the model may ask again";
            return Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::FourEyes));
        }
        let started = self.started().await?;
        if self.caller.is_author_of(started) {
            let detail =
                "you started this run, so another person has to approve its calls (four eyes); you may deny them";
            return Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::FourEyes));
        }
        let reaches_further = approved.iter().any(|decision| decision.scope != Scope::Once);
        if reaches_further && may_start_for(&self.caller, started.spec.principal.as_ref()) {
            let detail =
                "an approval beyond this call would cover runs that you may start (four eyes); approve it `once`";
            return Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::FourEyes));
        }
        Ok(())
    }

    /// Refuses input for a run from a caller who may approve the calls that follow from it.
    pub(crate) async fn require_no_decider(&self) -> Result<(), ServiceError> {
        if !self.four_eyes || !self.caller.scopes.contains(scopes::Scope::ApprovalsDecide) {
            return Ok(());
        }
        if self.caller.is_author_of(self.started().await?) {
            return Ok(());
        }
        let detail = "you may approve the calls of this run, so another person has to send its input (four eyes)";
        Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::FourEyes))
    }
}

impl TenantRunner {
    /// Refuses a grant for runs that its creator may start.
    pub(crate) fn require_others_runs(&self, principal: Option<&Principal>) -> Result<(), ServiceError> {
        if !self.four_eyes || !may_start_for(&self.caller, principal) {
            return Ok(());
        }
        let detail = "this grant would cover runs that you may start yourself (four eyes); an approver who may not \
                      start them has to create it";
        Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::FourEyes))
    }
}

/// Whether the caller may start runs of this principal.
fn may_start_for(caller: &Caller, principal: Option<&Principal>) -> bool {
    let may_start = [scopes::Scope::RunsWrite, scopes::Scope::ToolsCall];
    let may_name = caller.principal.is_none() || caller.principal.as_ref() == principal;
    may_name && may_start.into_iter().any(|scope| caller.scopes.contains(scope))
}
