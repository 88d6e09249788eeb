//! Pending approval: a call that requires a decision. The decision is bound to what the approver saw.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AnswerForm, Description, Kind, PendingCall, PendingCounts, Review};
use crate::id::CallId;
use crate::policy::{OnTimeout, PolicyMark};
use crate::run::{Binding, Call, CallState, Rejection, Settlement};
use crate::timestamp::optional_millis;
use crate::tool::{Annotations, Arguments, Difference, Outcome, Problem, Tool, ToolName, ToolRef, summary};

/// A call that requires approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// The call; decisions are addressed to it.
    pub call_id: CallId,
    /// The call in one line.
    pub summary: String,
    pub tool: ToolRef,
    /// The name the model sees.
    pub tool_name: ToolName,
    /// The arguments, valid by the tool's schema unless there are `problems`.
    pub arguments: Arguments,
    /// The problems of arguments that do not match the schema, at a server whose validation is advisory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// The server's hints about the tool.
    pub annotations: Annotations,
    /// Whether the operator trusts these hints.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    /// Hash of the tool's definition.
    pub definition_hash: String,
    /// The policy rule that asks, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why approval is required.
    pub reason: String,
    /// The policy that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyMark>,
    /// Whether a rule that denies may match the call, which could not be evaluated. Only a grant for exactly its arguments covers
    /// the call again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_denied: bool,
    /// The differences since an earlier approval of the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Whether it was sent before and may have taken effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outcome_unknown: bool,
    /// The position of the event that asks.
    pub event: u64,
    /// When the wait began.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_millis")]
    pub requested_at: Option<Timestamp>,
    /// The deadline; without it, the item stays pending as long as the run lives.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_millis")]
    pub expires_at: Option<Timestamp>,
    /// The effect if the deadline passes.
    #[serde(default, skip_serializing_if = "OnTimeout::is_expire")]
    pub on_timeout: OnTimeout,
}

impl PendingApproval {
    pub(super) fn new(call: &Call, tool: &Tool) -> Option<Self> {
        let CallState::Asked { rule, reason, policy, outcome_unknown, on_timeout, may_be_denied } = &call.state else {
            return None;
        };
        Some(Self {
            call_id: call.requested.id.clone(),
            summary: summary(&tool.origin, call.arguments()),
            tool: ToolRef::new(tool),
            tool_name: tool.name.clone(),
            arguments: call.arguments().clone(),
            problems: call.advisory.clone(),
            annotations: tool.annotations.clone(),
            trusted: tool.trusted,
            definition_hash: tool.hash.clone(),
            rule: rule.clone(),
            reason: reason.clone(),
            policy: policy.clone(),
            may_be_denied: *may_be_denied,
            differences: call.drift.clone(),
            outcome_unknown: *outcome_unknown,
            event: call.deadline.event,
            requested_at: call.deadline.since,
            expires_at: call.deadline.until(),
            on_timeout: *on_timeout,
        })
    }
}

impl Kind for PendingApproval {
    fn describe(&self) -> Description<'_> {
        Description {
            kind: "approval",
            call_id: Some(&self.call_id),
            event: Some(self.event),
            requested_at: self.requested_at,
            expires_at: self.expires_at,
            form: AnswerForm::Decision(Review {
                summary: &self.summary,
                reason: &self.reason,
                rule: self.rule.as_deref(),
                policy: self.policy.as_ref(),
                annotations: &self.annotations,
                trusted: self.trusted,
                problems: &self.problems,
                differences: &self.differences,
                outcome_unknown: self.outcome_unknown,
                on_timeout: self.on_timeout,
            }),
        }
    }

    fn call(&self) -> Option<PendingCall<'_>> {
        let tool = Cow::Borrowed(&self.tool);
        let arguments = Cow::Borrowed(&self.arguments);
        Some(PendingCall { id: &self.call_id, name: &self.tool_name, tool, arguments })
    }

    fn count(&self, counts: &mut PendingCounts) {
        counts.approvals += 1;
        counts.asked_at = [counts.asked_at, self.requested_at].into_iter().flatten().min();
    }

    fn expired(&self) -> Option<Settlement> {
        // A call that may have taken effect is not reported as not run.
        if self.outcome_unknown {
            return Some(Settlement::Completed(Outcome::Unknown.into()));
        }
        let message = "Not run: this call was neither approved nor denied in time. That is not a denial. Continue \
                       without it, or call it again if it is still needed.";
        Some(Settlement::Rejected { reason: Rejection::Expired, message: message.into() })
    }

    fn binding(&self) -> Option<Binding> {
        Some(Binding {
            origin: self.tool.origin.clone(),
            definition: self.definition_hash.clone(),
            arguments: self.arguments.hash(),
            policy: self.policy.clone(),
            event: self.event,
        })
    }
}
