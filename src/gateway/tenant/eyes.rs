//! Four eyes: whoever starts a run is not the one who lets its calls run. Saying no is open to everybody. Neither does whoever
//! may approve calls of a run have a hand in what they are: by what it is told, or by other arguments.

use super::{TenantRun, TenantRunner};
use crate::core::error::ErrorCode;
use crate::core::id::Principal;
use crate::core::run::{Answer, Decision, Resume, Scope, Started};
use crate::gateway::access::{self, Caller};
use crate::gateway::problem::Problem;

impl TenantRun {
    /// Refuses a yes of whoever started the run, and one that would let calls run of runs that whoever gives it may start.
    pub(super) async fn require_other_eyes(&self, resume: &Resume) -> Result<(), Problem> {
        let decisions = resume.decisions.iter().map(|(_, decision)| decision);
        let approved: Vec<&Decision> = decisions.filter(|decision| decision.answer == Answer::Approve).collect();
        if !self.four_eyes || approved.is_empty() {
            return Ok(());
        }
        if approved.iter().any(|decision| decision.edited_arguments.is_some()) {
            let detail = "a call with your own arguments would have been seen by nobody else (four eyes); deny it and say \
                          why, and the model may ask again";
            return Err(Problem::new(ErrorCode::Forbidden, detail));
        }
        let started = self.started().await?;
        if is_theirs(&self.caller, started) {
            let detail =
                "you started this run, and somebody else has to approve its calls (four eyes); you may deny them";
            return Err(Problem::new(ErrorCode::Forbidden, detail));
        }
        let reaches_further = approved.iter().any(|decision| decision.scope != Scope::Once);
        if reaches_further && may_start_for(&self.caller, started.spec.principal.as_ref()) {
            let detail =
                "a yes beyond this call would cover runs that you may start yourself (four eyes); approve it `once`";
            return Err(Problem::new(ErrorCode::Forbidden, detail));
        }
        Ok(())
    }

    /// Refuses what is said to a run by somebody who may approve the calls that come of it.
    pub(super) async fn require_no_decider(&self) -> Result<(), Problem> {
        if !self.four_eyes || !self.caller.scopes.contains(access::Scope::ApprovalsDecide) {
            return Ok(());
        }
        if is_theirs(&self.caller, self.started().await?) {
            return Ok(());
        }
        let detail =
            "you may approve the calls of this run, so that somebody else has to say what it is told (four eyes)";
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }
}

impl TenantRunner {
    /// Refuses a standing approval for runs that whoever gives it may start.
    pub(super) fn require_others_runs(&self, principal: Option<&Principal>) -> Result<(), Problem> {
        if !self.four_eyes || !may_start_for(&self.caller, principal) {
            return Ok(());
        }
        let detail = "this standing approval would cover runs that you may start yourself (four eyes); somebody who may not \
                      start them has to give it";
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }
}

/// Whether they started a run, or one whose beginning it copies, or it acts on their behalf.
fn is_theirs(caller: &Caller, started: &Started) -> bool {
    let acts_for_them = caller.principal.is_some() && caller.principal == started.spec.principal;
    acts_for_them || started.authors().iter().any(|author| **author == *caller.name)
}

/// Whether they may start runs that act on behalf of this principal.
fn may_start_for(caller: &Caller, principal: Option<&Principal>) -> bool {
    let may_start = [access::Scope::RunsWrite, access::Scope::ToolsCall];
    let may_name = caller.principal.is_none() || caller.principal.as_ref() == principal;
    may_name && may_start.into_iter().any(|scope| caller.scopes.contains(scope))
}
