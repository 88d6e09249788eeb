//! The pending calls that the grant from a decision would cover, before the grant exists.

use super::turn::{Call, CallState};
use super::{AskedBy, Coverage, Decision, DecisionKind, Run, Scope};
use crate::id::CallId;
use crate::policy::Condition;

impl Run {
    /// Whether the grant from an approval of one call of the open turn would also cover another call that requires approval.
    /// `false` for a call of another tool, and for one that a person has to decide about in any case.
    pub fn would_cover(&self, decision: &Decision, approved: &CallId, other: &CallId) -> bool {
        let is_wider = decision.answer == DecisionKind::Approve && decision.scope != Scope::Once;
        let (Some(approved), Some(other)) = (self.call(approved), self.call(other)) else { return false };
        let (Some(of), Some(tool)) = (&approved.tool, &other.tool) else { return false };
        let is_same_tool = (&of.name, &of.hash) == (&tool.name, &tool.hash);
        if !is_wider || !is_same_tool || other.reapproval_reason().is_some() {
            return false;
        }
        match &decision.coverage {
            Coverage::Tool | Coverage::When(_) if other.may_be_denied() || !other.is_asked_like(approved) => false,
            Coverage::Tool => true,
            Coverage::Arguments => {
                let would_run = decision.edited_arguments.as_ref().unwrap_or_else(|| approved.arguments());
                would_run.hash() == other.arguments().hash()
            }
            Coverage::When(when) => {
                Condition::for_grant(when).is_ok_and(|when| when.holds_for(&self.subject(tool, other.arguments())))
            }
        }
    }
}

impl Call {
    /// Whether it waits for a decision, and a rule that denies could not be evaluated for it.
    fn may_be_denied(&self) -> bool {
        matches!(self.state, CallState::Asked { may_be_denied: true, .. })
    }

    /// Whether an approval of the other call answers the question about this one ([`AskedBy::answers`]).
    fn is_asked_like(&self, other: &Self) -> bool {
        let asking_rule =
            |call: &Self| if let CallState::Asked { rule, .. } = &call.state { rule.clone() } else { None };
        AskedBy { rule: asking_rule(other) }.answers_rule(asking_rule(self).as_ref())
    }
}
