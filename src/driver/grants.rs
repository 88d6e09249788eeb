//! Grants from approvals with a wider scope. A grant begins when its call is dispatched: the call was compared once
//! more, and that is in the journal. An approval of a call that drifted, was refused or cancelled, or was not
//! dispatched for another reason creates no grant.

use jiff::Timestamp;
use serde_json::json;
use toolgate_core::id::{CallId, RunId};
use toolgate_core::json;
use toolgate_core::run::{AskedBy, CallAuthorization, Coverage, DecisionKind, Run, Scope};
use toolgate_core::tool::{Arguments, summary, summary_of_any, summary_when};
use toolgate_ports::{ApprovedCall, Grant};

use super::{Driver, Journal};

impl Driver<'_> {
    /// The grants from approvals of calls that are about to be dispatched, if their scope is wider than the call.
    pub(super) fn begun<'c>(&self, journal: &Journal, calls: impl IntoIterator<Item = &'c CallId>) -> Vec<Grant> {
        let now = self.ports.clock.now();
        calls.into_iter().filter_map(|call| grant(journal.id(), journal.run(), call, now)).collect()
    }

    /// Stores grants. A lost grant costs a question later, and nothing else.
    pub(super) async fn remember(&self, grants: &[Grant]) {
        for grant in grants {
            if let Err(error) = self.ports.approvals.grant(grant).await {
                let tool = &grant.tool;
                tracing::warn!(%tool, %error, "failed to store grant; the next call requires approval again");
            }
        }
    }
}

/// The grant from a decision. Deterministic: a call may be dispatched more than once after one decision.
fn grant(id: &RunId, run: &Run, call_id: &CallId, now: Timestamp) -> Option<Grant> {
    let call = run.call(call_id)?;
    let Some(CallAuthorization::HumanApproval { rule, .. }) = &call.authorization else { return None };
    let decision = run.decision(call_id).filter(|decision| decision.answer == DecisionKind::Approve)?;
    let is_over = decision.expires_at.is_some_and(|until| until <= now);
    if decision.scope == Scope::Once || is_over {
        return None;
    }
    let (tool, spec) = (call.tool.as_ref()?, &run.started().spec);
    let given = json::hash(&json!({"run": id, "call": call_id, "definition": tool.hash, "event": call.deadline.event}));
    let arguments = (decision.coverage == Coverage::Arguments).then(|| call.arguments());
    let name = given.trim_start_matches("sha256:").chars().take(20).collect::<String>();
    Some(Grant {
        id: format!("grant_{name}").into(),
        session: (decision.scope == Scope::Session).then(|| run.started().session.clone()),
        tenant: run.started().tenant.clone(),
        agent: spec.agent.clone(),
        principal: spec.principal.clone(),
        tool: tool.name.clone(),
        origin: tool.origin.clone(),
        definition: tool.hash.clone(),
        summary: match &decision.coverage {
            Coverage::Tool => summary_of_any(&tool.origin),
            Coverage::Arguments => summary(&tool.origin, call.arguments()),
            Coverage::When(condition) => summary_when(&tool.origin, condition),
        },
        arguments: arguments.map(Arguments::hash),
        when: if let Coverage::When(when) = &decision.coverage { Some(when.clone()) } else { None },
        asked_by: Some(AskedBy { rule: rule.clone() }),
        by: decision.by.clone(),
        via: decision.via,
        reason: decision.reason.clone(),
        given_with: Some(ApprovedCall { run: id.clone(), call: call_id.clone() }),
        created_at: now,
        expires_at: decision.expires_at,
        revoked: None,
    })
}
