//! Events of approvals, questions and deadlines.

use toolgate_service::{CoverageView, DecisionKindView, ScopeView};
use utoipa::ToSchema;

use crate::agents::PolicyView;
use crate::closed_sets::{ChannelView, OnTimeoutView};
use crate::runs::events::members::CallView;

/// Events of approvals, questions and deadlines.
#[derive(ToSchema)]
#[schema(as = ApprovalEventKind)]
#[serde(tag = "type")]
#[allow(dead_code)] // the lifecycle writes it; this describes what it writes
pub(crate) enum ApprovalEvents {
    /// A call requires approval.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        #[serde(flatten)]
        call: CallView,
        /// The policy rule that requires the approval.
        rule: Option<String>,
        /// Why the call requires approval.
        reason: String,
        /// The policy that requires the approval.
        policy: Option<PolicyView>,
        /// The time for a decision, in seconds.
        answer_timeout_s: Option<u64>,
        /// The policy's decision after that time.
        on_timeout: OnTimeoutView,
    },
    /// An approver decided, or the policy after the time for an answer.
    #[serde(rename = "approval.decided")]
    ApprovalDecided {
        #[serde(flatten)]
        call: CallView,
        /// The decision.
        decision: DecisionKindView,
        /// The approver.
        by: String,
        /// Where the decision was made.
        via: ChannelView,
        /// The scope of an approval.
        scope: ScopeView,
        /// Which later calls an approval covers beyond `once`.
        r#match: CoverageView,
        /// When an approval beyond `once` expires.
        #[schema(format = DateTime)]
        expires_at: Option<String>,
        /// Whether the approver replaced the arguments.
        edited: bool,
        /// The policy that required the approval.
        policy: Option<PolicyView>,
        /// The reason that the approver gave.
        reason: Option<String>,
    },
    /// The deadline of an approval passed without a decision.
    #[serde(rename = "approval.expired")]
    ApprovalExpired {
        #[serde(flatten)]
        call: CallView,
    },
    /// An external result or an answer did not arrive before its deadline.
    #[serde(rename = "pending.expired")]
    PendingExpired {
        #[serde(flatten)]
        call: CallView,
    },
    /// The deadline of a pending item was extended.
    #[serde(rename = "pending.extended")]
    PendingExtended {
        #[serde(flatten)]
        call: CallView,
        /// The new deadline.
        #[schema(format = DateTime)]
        expires_at: String,
        /// The person or program that extended it.
        by: String,
        /// Where it was extended.
        via: ChannelView,
    },
    /// The model asks a person a question.
    #[serde(rename = "question.asked")]
    QuestionAsked {
        #[serde(flatten)]
        call: CallView,
    },
    /// The question was answered.
    #[serde(rename = "question.answered")]
    QuestionAnswered {
        #[serde(flatten)]
        call: CallView,
        /// The person who answered.
        by: String,
        /// Where the answer was given.
        via: ChannelView,
        /// The answer; only with content.
        #[schema(nullable = false)]
        answer: Option<String>,
    },
}
