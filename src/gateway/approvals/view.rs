//! The API view of an approval: everything that an approver needs who did not start the run.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use toolgate_core::run::{Channel, Coverage, Decision, DecisionKind, Scope};
use toolgate_core::timestamp::{millis, optional_millis};
use toolgate_service::{Approval, ApprovalState, CallContext, CoverageView, DecisionKindView, ScopeView};
use utoipa::ToSchema;

use crate::closed_sets::ChannelView;
use crate::runs::pending::{PendingApprovalView, PendingView};
use crate::runs::view::StatusView;

/// A call that requires approval.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Approval)]
pub(super) struct ApprovalView {
    /// The approval's id. If the same call requires approval again, that is another approval.
    #[schema(example = "appr_019a3f6c5b7e7d3a8a51c0ffee000000_7")]
    id: String,
    /// Always `approval`.
    object: &'static str,
    /// The approval's status.
    status: ApprovalStateView,
    /// The decision; null unless the approval is decided.
    decision: Option<DecisionView>,
    /// The run that requires the approval.
    run_id: String,
    /// The status of that run.
    run_status: StatusView,
    /// The run's agent.
    agent: String,
    /// The session of the run.
    session_id: String,
    /// The principal on whose behalf the run acts.
    principal: Option<String>,
    /// The caller who started the run.
    created_by: Option<String>,
    /// The beginning of the run's input.
    title: String,
    /// The run's input.
    task: String,
    /// The model's text beside the call.
    model_text: String,
    /// The tool's description, as its provider wrote it.
    description: Option<String>,
    /// The arguments as the model wrote them; null unless a person replaced them.
    #[schema(value_type = Option<Object>)]
    original_arguments: Option<Value>,
    /// The call.
    #[serde(flatten)]
    call: PendingApprovalView,
}

/// The status of an approval.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ApprovalStatus)]
enum ApprovalStateView {
    /// A decision is missing.
    Pending,
    /// Decided: `decision` says how.
    Decided,
    /// The deadline passed without a decision.
    Expired,
    /// Not required any more: the run ended, or requires another approval.
    Withdrawn,
}

/// A decision.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MadeDecision)]
struct DecisionView {
    /// The decision.
    #[schema(value_type = DecisionKindView)]
    decision: DecisionKind,
    /// The approver.
    by: String,
    /// Where the decision was made.
    #[schema(value_type = ChannelView)]
    via: Channel,
    /// When the decision was made.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    at: Timestamp,
    /// The reason that the approver gave.
    reason: Option<String>,
    /// The scope of an approval.
    #[schema(value_type = ScopeView)]
    scope: Scope,
    /// Which later calls an approval covers beyond `once`.
    #[serde(rename = "match")]
    #[schema(value_type = CoverageView)]
    coverage: Coverage,
    /// When an approval beyond `once` expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    expires_at: Option<Timestamp>,
    /// Arguments that replaced the model's.
    #[schema(value_type = Option<Object>)]
    edited_arguments: Option<Value>,
}

impl ApprovalView {
    /// The view of an approval. `None` if the pending item is of another kind.
    pub(super) fn new(approval: &Approval) -> Option<Self> {
        let PendingView::Approval(call) = PendingView::new(approval.of.id(), &approval.item) else { return None };
        let (row, run) = (&approval.of.row, &approval.run);
        let started = run.started();
        let CallContext { task, model_text, description, original_arguments } = CallContext::new(run, approval.call());
        let (status, decision) = match &approval.state {
            ApprovalState::Pending => (ApprovalStateView::Pending, None),
            ApprovalState::Decided { decision, at } => {
                (ApprovalStateView::Decided, Some(DecisionView::new(decision, *at)))
            }
            ApprovalState::Expired => (ApprovalStateView::Expired, None),
            ApprovalState::Withdrawn => (ApprovalStateView::Withdrawn, None),
        };
        Some(Self {
            id: approval.id().to_string(),
            object: "approval",
            status,
            decision,
            run_id: row.id.to_string(),
            run_status: approval.status.into(),
            agent: row.agent.to_string(),
            session_id: row.session.to_string(),
            principal: started.spec.principal.as_ref().map(ToString::to_string),
            created_by: started.by.clone(),
            title: row.title.clone(),
            task,
            model_text,
            description,
            original_arguments: original_arguments.map(|arguments| arguments.to_value()),
            call,
        })
    }
}

impl DecisionView {
    fn new(decision: &Decision, at: Timestamp) -> Self {
        Self {
            decision: decision.answer,
            by: decision.by.clone(),
            via: decision.via,
            at,
            reason: decision.reason.clone(),
            scope: decision.scope,
            coverage: decision.coverage.clone(),
            expires_at: decision.expires_at,
            edited_arguments: decision.edited_arguments.as_ref().map(|arguments| arguments.to_value()),
        }
    }
}
