//! `GET /v1/approval-grants`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use toolgate_core::id::{AgentName, GrantId, SessionId};
use toolgate_ports::GrantFilter;
use toolgate_service::Scope;
use utoipa::IntoParams;

use super::view::GrantView;
use crate::access::{Authenticated, ReadPermit};
use crate::body::Query;
use crate::pagination::{Page, limit, unknown_cursor};
use crate::problem::Problem;
use crate::state::Gateway;

/// Filters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
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
    responses(
        (status = 200, description = "A page of grants", body = Page<GrantView>),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Query(which): Query<ListParams>,
    _permit: ReadPermit,
) -> Result<Json<Page<GrantView>>, Problem> {
    caller.require(Scope::ApprovalsRead)?;
    let limit = limit(which.limit)?;
    let runner = gateway.runner_of(&caller);
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
    Ok(Json(Page::of(grants, limit, |grant| grant.id.to_string(), |grant| GrantView::of(grant, now))))
}
