//! `POST /v1/approval-grants`

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::id::{AgentName, Principal, SessionId};
use toolgate_runner::NewGrant;
use toolgate_service::Scope;
use utoipa::ToSchema;

use super::view::GrantView;
use crate::access::Authenticated;
use crate::body::Body;
use crate::name_rules;
use crate::problem::Problem;
use crate::state::Gateway;

/// How long a grant is valid by default.
const USUAL: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A grant to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewGrant)]
pub(super) struct NewGrantBody {
    /// The agent whose calls it covers. Default: the only agent, or `assistant`.
    #[schema(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// The tool, by the name that the model sees. The grant is bound to the tool's current definition.
    #[schema(example = "mcp_billing_refund")]
    tool: String,
    /// The only session in which the grant is valid. Default: all sessions.
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// The principal on whose behalf the calls are made. Default: only calls of runs without a principal.
    #[schema(value_type = Option<String>)]
    principal: Option<Principal>,
    /// The only arguments that the grant covers. Default: any arguments.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map<String, Value>>,
    /// When the grant expires. Default: 90 days from now.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// The reason, for later readers.
    reason: Option<String>,
}

/// Create a grant
///
/// Calls of the tool that require approval by policy run without a person from now on. Calls that the policy denies are
/// still denied.
#[utoipa::path(
    post, path = "/v1/approval-grants", tag = "approvals", operation_id = "createApprovalGrant", request_body = NewGrantBody,
    responses(
        (status = 201, description = "The grant", body = GrantView),
    ),
)]
pub(super) async fn create(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Body(given): Body<NewGrantBody>,
) -> Result<(StatusCode, Json<GrantView>), Problem> {
    caller.require(Scope::ApprovalsDecide)?;
    name_rules::fit("/session_id", given.session_id.as_ref().map(SessionId::as_str))?;
    name_rules::fit("/principal", given.principal.as_ref().map(Principal::as_str))?;
    let runner = gateway.runner_of(&caller);
    let now = runner.now();
    let expires_at = given.expires_at.or_else(|| now.checked_add(USUAL).ok());
    if expires_at.is_some_and(|until| until <= now) {
        return Err(Problem::invalid("/expires_at", "this time has passed; give one in the future"));
    }
    let new = NewGrant {
        agent: given.agent.map_or_else(|| runner.usual_agent(), Ok)?,
        tool: given.tool,
        session: given.session_id,
        principal: given.principal,
        arguments: given.arguments,
        reason: given.reason,
        expires_at,
    };
    let grant = runner.grant(new).await?;
    Ok((StatusCode::CREATED, Json(GrantView::of(grant, now))))
}
