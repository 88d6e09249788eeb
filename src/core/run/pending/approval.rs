//! Pending approval: a call that requires a decision. The decision is bound to what the approver saw.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AnswerForm, Description, Kind, PendingCall, PendingCounts, Review};
use crate::id::CallId;
use crate::policy::{OnTimeout, PolicyMark};
use crate::run::{Binding, Call, CallState, Rejection, Settlement};
use crate::tool::{Annotations, Arguments, Difference, Origin, Outcome, Problem, Tool, ToolName, summary};

/// A call that requires approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// The call; decisions are addressed to it.
    pub call_id: CallId,
    /// The call in one line.
    pub summary: String,
    pub origin: Origin,
    /// The name the model sees.
    pub name: ToolName,
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
    pub definition: String,
    /// The policy rule that asks, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why approval is required.
    pub reason: String,
    /// The policy that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyMark>,
    /// The differences since an earlier approval of the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Whether it was sent before and may have taken effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_doubt: bool,
    /// The position of the event that asks.
    pub event: u64,
    /// When the wait began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The deadline; without it, the item stays pending as long as the run lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The effect if the deadline passes.
    #[serde(default, skip_serializing_if = "OnTimeout::is_expire")]
    pub on_timeout: OnTimeout,
}

impl PendingApproval {
    pub(super) fn new(call: &Call, tool: &Tool) -> Option<Self> {
        let CallState::Asked { rule, reason, policy, in_doubt, on_timeout } = &call.state else { return None };
        Some(Self {
            call_id: call.requested.id.clone(),
            summary: summary(&tool.origin, call.arguments()),
            origin: tool.origin.clone(),
            name: tool.name.clone(),
            arguments: call.arguments().clone(),
            problems: call.advisory.clone(),
            annotations: tool.annotations.clone(),
            trusted: tool.trusted,
            definition: tool.hash.clone(),
            rule: rule.clone(),
            reason: reason.clone(),
            policy: policy.clone(),
            differences: call.drift.clone(),
            in_doubt: *in_doubt,
            event: call.deadline.event,
            since: call.deadline.since,
            until: call.deadline.until(),
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
            since: self.since,
            until: self.until,
            form: AnswerForm::Decision(Review {
                summary: &self.summary,
                reason: &self.reason,
                rule: self.rule.as_deref(),
                policy: self.policy.as_ref(),
                annotations: &self.annotations,
                trusted: self.trusted,
                problems: &self.problems,
                differences: &self.differences,
                in_doubt: self.in_doubt,
                on_timeout: self.on_timeout,
            }),
        }
    }

    fn call(&self) -> Option<PendingCall<'_>> {
        let origin = Cow::Borrowed(&self.origin);
        let arguments = Cow::Borrowed(&self.arguments);
        Some(PendingCall { id: &self.call_id, name: &self.name, origin, arguments })
    }

    fn count(&self, counts: &mut PendingCounts) {
        counts.approvals += 1;
        counts.asked_at = [counts.asked_at, self.since].into_iter().flatten().min();
    }

    fn expired(&self) -> Option<Settlement> {
        // A call that may have taken effect is not reported as not run.
        if self.in_doubt {
            return Some(Settlement::Completed(Outcome::Unknown.into()));
        }
        let message = "Not run: this call was neither approved nor denied in time. That is not a denial. Continue \
                       without it, or call it again if it is still needed.";
        Some(Settlement::Rejected { reason: Rejection::Expired, message: message.into() })
    }

    fn binding(&self) -> Option<Binding> {
        Some(Binding {
            origin: self.origin.clone(),
            definition: self.definition.clone(),
            arguments: self.arguments.hash(),
            policy: self.policy.clone(),
            event: self.event,
        })
    }
}
