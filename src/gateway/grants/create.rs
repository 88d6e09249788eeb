//! `POST /v1/approval-grants`

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::view::GrantView;
use crate::core::id::{AgentName, Principal, SessionId};
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::Body;
use crate::gateway::named;
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::runner::NewGrant;

/// How long a standing approval holds unless something else is said.
const USUAL: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A standing approval to be given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewGrant)]
pub(super) struct Given {
    /// The agent whose calls it covers; the only one, or `assistant`, unless it is named.
    #[schema(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// The tool, by the name the model sees. It is bound to the tool's definition as it is now.
    #[schema(example = "mcp_billing_refund")]
    tool: String,
    /// The only conversation it holds in; without it, all.
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// On whose behalf the calls are made; without it those that nobody is named for.
    #[schema(value_type = Option<String>)]
    principal: Option<Principal>,
    /// The only arguments it covers; without it, any.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map<String, Value>>,
    /// Until when it holds; 90 days, unless something else is said.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Why, for whoever reads of it later.
    reason: Option<String>,
}

/// Give a standing approval
///
/// Calls of the tool that the policy asks about run without a person from now on. What the policy denies is denied all the
/// same.
#[utoipa::path(
    post, path = "/v1/approval-grants", tag = "approvals", operation_id = "createApprovalGrant", request_body = Given,
    responses(
        (status = 201, description = "It stands", body = GrantView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    Body(given): Body<Given>,
) -> Result<(StatusCode, Json<GrantView>), Problem> {
    caller.require(Scope::ApprovalsDecide)?;
    named::fit("/session_id", given.session_id.as_ref().map(SessionId::as_str))?;
    named::fit("/principal", given.principal.as_ref().map(Principal::as_str))?;
    let runner = gateway.runner_of(&caller);
    let now = runner.now();
    let expires_at = given.expires_at.or_else(|| now.checked_add(USUAL).ok());
    if expires_at.is_some_and(|until| until <= now) {
        return Err(Problem::invalid("/expires_at", "this time has passed; give one that is to come"));
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
