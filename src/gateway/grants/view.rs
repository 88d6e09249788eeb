//! The API view of a grant.

use jiff::Timestamp;
use serde::Serialize;
use toolgate_core::run::Channel;
use toolgate_core::timestamp::{millis, optional_millis};
use toolgate_core::tool::ToolRef;
use toolgate_ports::Grant;
use toolgate_service::ScopeView;
use utoipa::ToSchema;

use crate::closed_sets::ChannelView;
use crate::revoked::RevokedView;
use crate::runs::pending::ToolDescription;

/// A grant: later calls of a tool run without a person, as long as the tool's definition does not change.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Grant)]
pub struct GrantView {
    /// The grant's id.
    id: String,
    /// Always `approval.grant`.
    object: &'static str,
    /// Whether the grant is valid now.
    active: bool,
    /// The agent whose calls it covers.
    agent: String,
    /// Either `session`, valid in one session, or `always`, valid in all.
    #[schema(value_type = ScopeView)]
    scope: &'static str,
    /// The only session in which the grant is valid.
    session_id: Option<String>,
    /// The principal on whose behalf the calls are made; without it, only calls of runs without a principal are
    /// covered.
    principal: Option<String>,
    /// The tool.
    #[schema(value_type = ToolDescription)]
    tool: ToolRef,
    /// The name that the model sees.
    tool_name: String,
    /// Hash of the tool's definition.
    definition_hash: String,
    /// Hash of the only arguments that the grant covers (RFC 8785); without it, any arguments.
    arguments_hash: Option<String>,
    /// The condition that covered calls meet.
    when: Option<String>,
    /// The rule that asked about the approved call. A grant without `arguments_hash` that was given with a call covers no
    /// call about which another rule asks.
    rule: Option<String>,
    /// The call that was approved, or the tool, in one line.
    summary: String,
    /// The approver who created the grant.
    by: String,
    /// Where the grant was created.
    #[schema(value_type = ChannelView)]
    via: Channel,
    /// The reason that the approver gave.
    reason: Option<String>,
    /// The run in which a call was approved for good.
    run_id: Option<String>,
    /// The call that was approved for good.
    call_id: Option<String>,
    /// When the grant was created.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    /// When the grant expires; without it, the grant is valid until it is revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    expires_at: Option<Timestamp>,
    /// The grant's revocation; only for a revoked grant.
    revoked: Option<RevokedView>,
}

impl GrantView {
    /// The view of a grant at that time.
    pub fn new(grant: Grant, now: Timestamp) -> Self {
        let (run_id, call_id) =
            grant.given_with.as_ref().map(|with| (with.run.to_string(), with.call.to_string())).unzip();
        Self {
            active: grant.holds(now),
            id: grant.id.to_string(),
            object: "approval.grant",
            agent: grant.agent.to_string(),
            scope: if grant.session.is_some() { "session" } else { "always" },
            session_id: grant.session.map(|session| session.to_string()),
            principal: grant.principal.map(|principal| principal.to_string()),
            tool: grant.origin.into(),
            tool_name: grant.tool.to_string(),
            definition_hash: grant.definition,
            arguments_hash: grant.arguments,
            when: grant.when,
            rule: grant.asked_by.and_then(|asked_by| asked_by.rule),
            summary: grant.summary,
            by: grant.by,
            via: grant.via,
            reason: grant.reason,
            run_id,
            call_id,
            created_at: grant.created_at,
            expires_at: grant.expires_at,
            revoked: grant.revoked.map(RevokedView::from),
        }
    }
}
