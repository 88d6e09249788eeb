//! Events of a checked call: it is handed over, requires approval or is rejected, with the problems of its arguments.

use super::Lifecycle;
use crate::id::CallId;
use crate::lifecycle::{Content, LifecycleKind};
use crate::run::{CallVerdict, Rejection};
use crate::tool::Problem;

impl Lifecycle {
    pub(super) fn call_checked(&self, call: &CallId, verdict: &CallVerdict) -> Vec<LifecycleKind> {
        match verdict {
            CallVerdict::Run { .. } => self.external_requested(call),
            CallVerdict::Ask { rule, reason, policy, answer_timeout_s, on_timeout, .. } => {
                vec![LifecycleKind::ApprovalRequested {
                    call: self.call_ref(call),
                    rule: rule.clone(),
                    reason: reason.clone(),
                    policy: policy.clone(),
                    answer_timeout_s: *answer_timeout_s,
                    on_timeout: *on_timeout,
                }]
            }
            CallVerdict::Rejected { reason, message, problems } => {
                let quotes = *reason == Rejection::InvalidArguments && self.content == Content::Omit;
                let rejected = LifecycleKind::Rejected {
                    call: self.call_ref(call),
                    reason: *reason,
                    message: (!quotes).then(|| message.clone()),
                };
                match reason {
                    Rejection::InvalidArguments => {
                        let problems = match problems.as_slice() {
                            // A journal of an earlier version has only the message.
                            [] => self.quotable_problems(&[Problem::whole("arguments", message.clone())]),
                            problems => self.quotable_problems(problems),
                        };
                        let call_id = Some(call.clone());
                        vec![
                            LifecycleKind::ValidationFailed { target: "arguments", call_id, problems, advisory: false },
                            rejected,
                        ]
                    }
                    Rejection::Unknown
                    | Rejection::Denied
                    | Rejection::Budget
                    | Rejection::Deferred
                    | Rejection::Expired => vec![rejected],
                }
            }
        }
    }

    /// The event for arguments that do not match the schema, at a server whose validation is advisory.
    pub(super) fn invalid_arguments(&self, call: &CallId, advisory: &[Problem]) -> Option<LifecycleKind> {
        let problems = self.quotable_problems(advisory);
        let call_id = Some(call.clone());
        let failed = LifecycleKind::ValidationFailed { target: "arguments", call_id, problems, advisory: true };
        (!advisory.is_empty()).then_some(failed)
    }

    /// Problems. Without `Content::Include` they have neither received values nor messages that quote them.
    pub(super) fn quotable_problems(&self, problems: &[Problem]) -> Vec<Problem> {
        match self.content {
            Content::Include => problems.to_vec(),
            Content::Omit => problems
                .iter()
                .map(|problem| Problem { message: String::new(), received: None, ..problem.clone() })
                .collect(),
        }
    }
}
