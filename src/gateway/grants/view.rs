//! A standing approval as the API shows it.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::gateway::approvals::via;
use crate::gateway::revoked::RevokedView;
use crate::gateway::runs::OriginView;
use crate::ports::Grant;

/// A standing approval: later calls of a tool run without a person, as long as its definition stays what it was.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Grant)]
pub(super) struct GrantView {
    /// Its id.
    id: String,
    /// `approval.grant`.
    object: &'static str,
    /// Whether it holds now.
    holds: bool,
    /// The agent whose calls it covers.
    agent: String,
    /// `session`: it holds in one conversation; `always`: in all.
    scope: &'static str,
    /// The only conversation it holds in.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// On whose behalf the calls are made; without it those that nobody is named for.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// The name the model sees.
    tool: String,
    /// Who runs it.
    origin: OriginView,
    /// Hash of the tool's definition.
    definition: String,
    /// Hash of the only arguments it covers (RFC 8785); without it, any.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
    /// The call that was approved, or the tool, in one line.
    summary: String,
    /// Who gave it.
    by: String,
    /// Where they did: `terminal`, `command_line`, `api` or `library`.
    via: &'static str,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The run in which a call was approved for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    /// That call.
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    /// When it was given.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Until when it holds; without it, until it is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// That it was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<RevokedView>,
}

impl GrantView {
    pub(super) fn of(grant: Grant, now: Timestamp) -> Self {
        let (run_id, call_id) =
            grant.given_with.as_ref().map(|with| (with.run.to_string(), with.call.to_string())).unzip();
        Self {
            holds: grant.holds(now),
            id: grant.id.to_string(),
            object: "approval.grant",
            agent: grant.agent.to_string(),
            scope: if grant.session.is_some() { "session" } else { "always" },
            session_id: grant.session.map(|session| session.to_string()),
            principal: grant.principal.map(|principal| principal.to_string()),
            tool: grant.tool.to_string(),
            origin: OriginView::of(&grant.origin),
            definition: grant.definition,
            arguments: grant.arguments,
            summary: grant.summary,
            by: grant.by,
            via: via(grant.via),
            reason: grant.reason,
            run_id,
            call_id,
            created_at: grant.created_at,
            expires_at: grant.expires_at,
            revoked: grant.revoked.map(RevokedView::from),
        }
    }
}
