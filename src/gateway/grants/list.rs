//! `GET /v1/approval-grants`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view::GrantView;
use crate::core::id::{AgentName, GrantId, SessionId};
use crate::gateway::access::{Caller, ReadPermit, Scope};
use crate::gateway::body::Query;
use crate::gateway::page::{Page, limit};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::ports::GrantFilter;

/// Which standing approvals.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// Only of this conversation, and those that hold in all.
    #[param(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// Only for this tool, by the name the model sees.
    tool: Option<String>,
    /// Whether those that no longer hold are listed as well.
    #[serde(default)]
    ended: bool,
    /// How many: 1 to 100, and 20 unless something else is said.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Those that come after this one: `last_id` of the page before.
    #[param(value_type = Option<String>)]
    after: Option<GrantId>,
}

/// List standing approvals, newest first
#[utoipa::path(
    get, path = "/v1/approval-grants", tag = "approvals", operation_id = "listApprovalGrants", params(Which),
    responses(
        (status = 200, description = "A page of standing approvals", body = Page<GrantView>),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(which): Query<Which>,
    _permit: ReadPermit,
) -> Result<Json<Page<GrantView>>, Problem> {
    caller.require(Scope::ApprovalsRead)?;
    let limit = limit(which.limit)?;
    let runner = gateway.runner_of(&caller);
    if let Some(after) = &which.after {
        // It may have ended since.
        let named = GrantFilter { id: Some(after.clone()), ended: true, ..GrantFilter::default() };
        if runner.grants(named).await?.is_empty() {
            return Err(Problem::not_found("standing approval", after.as_str()).of_parameter("after"));
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
