//! An approval as the API shows it: all that somebody needs who was not there when the run was started.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::core::chat::Role;
use crate::core::run::{Answer, Channel, Coverage, Decision, Scope};
use crate::gateway::runs::{ApprovalView, PendingView, StatusView};
use crate::gateway::tenant::{Approval, Fate};

/// A call that a person decides about.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Approval)]
pub(super) struct InboxView {
    /// Its id. Asked again, it is another approval.
    #[schema(example = "appr_019a3f6c5b7e7d3a8a51c0ffee000000_7")]
    id: String,
    /// `approval`.
    object: &'static str,
    /// What came of it.
    status: FateView,
    /// How it was decided; only there if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionView>,
    /// The run that asks.
    run_id: String,
    /// Where that run stands.
    run_status: StatusView,
    /// Its agent.
    agent: String,
    /// The conversation it belongs to.
    session_id: String,
    /// On whose behalf it acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// Who started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<String>,
    /// The beginning of what it was told to do.
    title: String,
    /// What it was told to do.
    task: String,
    /// What the model said beside the call.
    said: String,
    /// What the tool does, in the words of whoever offers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The arguments as the model wrote them, when a person put others in their place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    written: Option<Value>,
    /// The call.
    #[serde(flatten)]
    call: ApprovalView,
}

/// What came of an approval.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ApprovalStatus)]
enum FateView {
    /// Nobody decided yet.
    Pending,
    /// Somebody did: `decision` says how.
    Decided,
    /// Nobody did in time.
    Expired,
    /// It is not asked any more: the run ended, or asks something else.
    Withdrawn,
}

/// A decision that was made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MadeDecision)]
struct DecisionView {
    /// `approve` or `deny`.
    decision: &'static str,
    /// Who decided.
    by: String,
    /// Where they did: `terminal`, `command_line`, `api` or `library`.
    via: &'static str,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How far a yes reaches: `once`, `session` or `always`.
    scope: &'static str,
    /// Which later calls a wider yes covers: `tool` or `arguments`.
    covers: &'static str,
    /// Until when a wider yes holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Arguments that were put in the place of the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    edited_arguments: Option<Value>,
}

impl InboxView {
    /// An approval. `None` if what waits is something else.
    pub(super) fn of(approval: &Approval) -> Option<Self> {
        let PendingView::Approval(call) = PendingView::of(approval.of.id(), &approval.debt) else { return None };
        let (row, run) = (&approval.of.row, &approval.run);
        let started = run.started();
        let asked = run.call(approval.call());
        let said = run.messages().iter().rfind(|message| message.role == Role::Assistant).map(|message| message.text());
        let (status, decision) = match &approval.fate {
            Fate::Pending => (FateView::Pending, None),
            Fate::Decided { decision, at } => (FateView::Decided, Some(DecisionView::of(decision, *at))),
            Fate::Expired => (FateView::Expired, None),
            Fate::Withdrawn => (FateView::Withdrawn, None),
        };
        Some(Self {
            id: approval.place().to_string(),
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
            task: started.input.text(),
            said: said.unwrap_or_default(),
            description: asked.and_then(|call| call.tool.as_ref()).map(|tool| tool.description.clone()),
            written: asked.filter(|call| call.edited.is_some()).map(|call| call.asked.arguments.to_value()),
            call,
        })
    }
}

impl DecisionView {
    fn of(decision: &Decision, at: Timestamp) -> Self {
        Self {
            decision: match decision.answer {
                Answer::Approve => "approve",
                Answer::Deny => "deny",
            },
            by: decision.by.clone(),
            via: via(decision.via),
            at,
            reason: decision.reason.clone(),
            scope: match decision.scope {
                Scope::Once => "once",
                Scope::Session => "session",
                Scope::Always => "always",
            },
            covers: match decision.covers {
                Coverage::Tool => "tool",
                Coverage::Arguments => "arguments",
            },
            expires_at: decision.expires_at,
            edited_arguments: decision.edited_arguments.as_ref().map(|arguments| arguments.to_value()),
        }
    }
}

/// How somebody decided, in a word.
pub(in crate::gateway) fn via(channel: Channel) -> &'static str {
    match channel {
        Channel::Terminal => "terminal",
        Channel::CommandLine => "command_line",
        Channel::Api => "api",
        Channel::Library => "library",
    }
}
