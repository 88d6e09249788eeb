//! `/v1/approval-grants`: grants.

mod view;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::id::{AgentName, GrantId, Principal, SessionId};
use toolgate_ports::GrantFilter;
use toolgate_runner::NewGrant;
use toolgate_service::TenantRunner;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use self::view::GrantView;
use crate::access::Admitted;
use crate::body::{Body, Path, Query};
use crate::idempotency::QuotedSession;
use crate::pagination::{Page, PageResult, limit, unknown_cursor};
use crate::problem::Problem;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(revoke))
}

/// A grant to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewGrant)]
struct NewGrantBody {
    /// The agent whose calls it covers. Default: the only agent, or `assistant`.
    #[schema(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// The tool, by the name that the model sees. The grant is bound to the tool's current definition.
    #[schema(example = "mcp_billing_refund")]
    tool_name: String,
    /// The only session in which the grant is valid. Default: all sessions.
    #[schema(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// The principal on whose behalf the calls are made. Default: only calls of runs without a principal.
    #[schema(value_type = Option<String>)]
    principal: Option<Principal>,
    /// The only arguments that the grant covers. Default: any arguments.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map<String, Value>>,
    /// A condition that covered calls meet, a CEL expression as in policies. Excludes `arguments`.
    #[schema(example = "args.amount < 100")]
    when: Option<String>,
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
    responses((status = 201, description = "The grant", body = GrantView)),
)]
async fn create(runner: TenantRunner, Body(given): Body<NewGrantBody>) -> Result<Response, Problem> {
    let new = NewGrant {
        agent: given.agent.map_or_else(|| runner.default_agent(), Ok)?,
        tool: given.tool_name,
        session: given.session_id,
        principal: given.principal,
        arguments: given.arguments,
        when: given.when,
        reason: given.reason,
        expires_at: given.expires_at,
    };
    let grant = runner.grant(new).await?;
    let quoted = grant.session.clone().map(QuotedSession);
    Ok((StatusCode::CREATED, quoted, Json(GrantView::new(grant, runner.now()))).into_response())
}

/// Filters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// Only grants of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// Only grants for this session, and those for all sessions.
    #[param(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// Only grants for this tool, by the name that the model sees.
    tool: Option<String>,
    /// Whether to include grants that expired or were revoked.
    #[serde(default)]
    ended: bool,
    /// The number of grants to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// A cursor: grants after this one. Pass the `last_id` of the previous page.
    #[param(value_type = Option<String>)]
    after: Option<GrantId>,
}

/// List grants
///
/// Returns grants, newest first.
#[utoipa::path(
    get, path = "/v1/approval-grants", tag = "approvals", operation_id = "listApprovalGrants", params(ListParams),
    responses((status = 200, description = "A page of grants", body = Page<GrantView>)),
)]
async fn list(Query(which): Query<ListParams>, runner: Admitted<TenantRunner>) -> PageResult<GrantView> {
    let limit = limit(which.limit)?;
    if let Some(after) = &which.after {
        // The grant may have ended since the previous page.
        let named = GrantFilter { id: Some(after.clone()), ended: true, ..GrantFilter::default() };
        if runner.grants(named).await?.is_empty() {
            return Err(unknown_cursor("grant", after.as_str()));
        }
    }
    let filter = GrantFilter {
        agent: which.agent,
        session: which.session_id,
        tool: which.tool,
        ended: which.ended,
        after: which.after,
        limit: Some(limit + 1),
        ..GrantFilter::default()
    };
    let (grants, now) = (runner.grants(filter).await?, runner.now());
    Ok(Json(Page::new(grants, limit, |grant| grant.id.to_string(), |grant| GrantView::new(grant, now))))
}

/// Revoke a grant
///
/// Calls that rely on the grant and were not yet sent require approval again. Revoking a grant twice has no further
/// effect.
#[utoipa::path(
    post, path = "/v1/approval-grants/{grant}/revoke", tag = "approvals", operation_id = "revokeApprovalGrant",
    responses((status = 200, description = "The revoked grant", body = GrantView)),
)]
async fn revoke(runner: TenantRunner, Path(grant): Path<String>) -> Result<Json<GrantView>, Problem> {
    let revoked = runner.revoke(&grant).await?;
    Ok(Json(GrantView::new(revoked, runner.now())))
}
