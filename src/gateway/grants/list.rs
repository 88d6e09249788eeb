//! `GET /v1/approval-grants`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view::GrantView;
use crate::core::id::{AgentName, SessionId};
use crate::gateway::access::{Caller, ReadPermit, Scope};
use crate::gateway::body::Query;
use crate::gateway::page::{Page, behind, limit};
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
    after: Option<String>,
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
    // The place of `after` may have ended since, so that it is looked for among all.
    let filter = GrantFilter { agent: which.agent, session: which.session_id, ended: true, ..GrantFilter::default() };
    let all = runner.grants(filter).await?;
    let mut grants = behind(all, which.after.as_deref(), "standing approval", |grant| grant.id.as_str())?;
    let now = runner.now();
    grants.retain(|grant| which.ended || grant.holds(now));
    grants.retain(|grant| which.tool.as_deref().is_none_or(|tool| grant.tool.as_str() == tool));
    Ok(Json(Page::of(grants, limit, |grant| grant.id.to_string(), |grant| GrantView::of(grant, now))))
}
