//! Drift detection: compares a call with what was approved, immediately before it is sent, sent again, or handed to the
//! caller or the user who answers it.

use std::sync::Arc;

use jiff::Timestamp;

use super::turn::{AnsweredElicitation, Call, CallState};
use super::{CallAuthorization, Run, ToolGrant};
use crate::id::CallId;
use crate::policy::{Judgement, Verdict};
use crate::tool::{Difference, Tool};

/// The reason why a call that may have taken effect requires approval, whatever the policy says.
const IN_DOUBT: &str = "it was sent before, and may already have taken effect; approve to send it again, deny to tell the \
                        model that the outcome is unknown";

/// The reason why a call that differs from what was approved requires approval, whatever the policy says.
const DRIFTED: &str = "it changed since it was authorized; review what changed before you allow it";

impl Run {
    /// The differences between a call that is about to leave and what was approved. `live` is the current tool,
    /// `judged` the policy's current judgement of the call.
    ///
    /// A person approved one definition and one reason to ask; a grant holds for one definition. A policy that has
    /// become more lenient revokes nothing. A message to a server about a running task starts nothing, and is not
    /// compared.
    pub fn drift(&self, id: &CallId, live: &Tool, judged: &Judgement, at: Timestamp) -> Vec<Difference> {
        let Some(call) = self.call(id).filter(|call| call.task().is_none()) else { return Vec::new() };
        let (Some(tool), Some(authorization)) = (&call.tool, &call.authorization) else { return Vec::new() };
        let policy = |was: &str| Difference::new("policy", was, &in_words(judged));
        let mut found = Vec::new();
        match authorization {
            CallAuthorization::Policy => {
                // For a call without an approval whose tool changed, the model reads that: it made the call for the old
                // definition.
                if judged.verdict != Verdict::Allow && live.hash == tool.hash {
                    found.push(policy("allow"));
                }
            }
            CallAuthorization::Grant(grant) => {
                found.extend(tool.differences(live));
                if judged.verdict == Verdict::Deny {
                    found.push(policy("ask"));
                }
                let subject = self.subject(tool, call.arguments());
                let covers = |granted: &ToolGrant| granted.covers(&subject, call.arguments(), Some(at), judged);
                let granted = self.granted.iter().find(|granted| granted.grant == *grant);
                if !granted.is_some_and(covers) {
                    let is_over = granted.is_none_or(|granted| granted.expires_at.is_some_and(|until| until <= at));
                    let now = if is_over { "expired" } else { "it does not cover the call any more" };
                    found.push(Difference::new("grant", "in force", now));
                }
            }
            CallAuthorization::HumanApproval { rule, reason } => {
                found.extend(tool.differences(live));
                let same_reason = judged.rule == *rule && judged.reason == *reason;
                let other_reason = judged.verdict == Verdict::Ask && !same_reason && found.is_empty();
                if judged.verdict == Verdict::Deny || other_reason {
                    found.push(policy(&format!("ask: {reason}")));
                }
                let bound = self.decisions.get(id).and_then(|decision| decision.binding.as_ref());
                if bound.is_some_and(|bound| bound.arguments != call.arguments().hash()) {
                    found.push(Difference::new("arguments", "what was approved", "something else"));
                }
            }
        }
        if (call.is_repeated_freely() || call.restarts_freely()) && !live.is_repeatable() {
            found.push(Difference::new("repeating it", "harmless", "not known to be harmless"));
        }
        found
    }

    /// Records the differences of a call that is checked again: the fold of `tool.drifted`.
    pub(super) fn drifted(&mut self, id: &CallId, differences: &[Difference], tool: Option<&Arc<Tool>>) {
        let Some(call) = self.open_call(id) else { return };
        let was = call.authorization.take();
        call.drift = differences.to_vec();
        if let Some(tool) = tool {
            call.tool = Some(tool.clone());
        }
        if !call.is_in_doubt() {
            call.state = CallState::Selected;
        }
        if let Some(CallAuthorization::Grant(grant)) = was {
            Arc::make_mut(&mut self.granted).retain(|granted| granted.grant != grant);
        }
    }
}

impl Call {
    /// The reason why the call requires approval even if the policy allows it: it was sent before, or it differs from
    /// what was approved. A call that drifted therefore never runs without a person's approval, and a tool that changes
    /// on every check causes one question instead of an endless loop.
    pub fn reapproval_reason(&self) -> Option<&'static str> {
        match (self.sent, self.drift.is_empty()) {
            (true, _) => Some(IN_DOUBT),
            (false, false) => Some(DRIFTED),
            (false, true) => None,
        }
    }

    /// Whether a person approved a call that is answered outside. It is handed over if it is unchanged since then.
    pub fn is_approved(&self) -> bool {
        self.state == CallState::Selected && matches!(self.authorization, Some(CallAuthorization::HumanApproval { .. }))
    }

    /// Whether the call may have run and is simply made again, because repeating it is harmless (law 4). Not if
    /// anything about it has changed.
    pub(super) fn is_repeated_freely(&self) -> bool {
        let is_repeatable = self.tool.as_ref().is_some_and(|tool| tool.is_repeatable());
        self.is_in_doubt() && is_repeatable && self.drift.is_empty()
    }

    /// Whether the call had begun when it was cancelled and is sent again with answers, without explicit consent,
    /// because repeating it is harmless.
    fn restarts_freely(&self) -> bool {
        let without_a_yes = |answered: &AnsweredElicitation| answered.needed.interrupted && !answered.given.repeat;
        self.state == CallState::Authorized && self.answered.as_ref().is_some_and(without_a_yes)
    }

    /// Whether it may have run, so that its outcome has to be settled explicitly.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_in_doubt() && !self.is_repeated_freely()
    }
}

fn in_words(judged: &Judgement) -> String {
    format!("{}: {}", judged.verdict.as_str(), judged.reason)
}
