//! `GET /v1/approvals`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::view::InboxView;
use crate::core::id::{AgentName, SessionId};
use crate::gateway::access::{Caller, ReadPermit, Scope};
use crate::gateway::body::Query;
use crate::gateway::page::{Page, limit};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::gateway::tenant::{Approval, Place};
use crate::ports::RunFilter;

/// Which approvals.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only with this status. Others than `pending` are read one by one: journals keep them, and no list.
    #[param(inline)]
    #[serde(default)]
    #[allow(dead_code)] // there is one, so there is nothing to choose
    status: Listed,
    /// Only of runs of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// Only of runs of this conversation.
    #[param(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// How many: 1 to 100, and 20 unless something else is said.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Those that come after this one: `last_id` of the page before.
    after: Option<String>,
}

/// The statuses there is a list of.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Listed {
    /// Nobody decided yet.
    #[default]
    Pending,
}

/// List what waits for a decision
///
/// Of the newest run first; approvals of one run are in the order in which they were asked for. What ran out of time a moment
/// ago may still be among them, as `expired`.
#[utoipa::path(
    get, path = "/v1/approvals", tag = "approvals", operation_id = "listApprovals", params(Which),
    responses(
        (status = 200, description = "A page of approvals", body = Page<InboxView>),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(which): Query<Which>,
    _permit: ReadPermit,
) -> Result<Json<Page<InboxView>>, Problem> {
    caller.require(Scope::ApprovalsRead)?;
    let limit = limit(which.limit)?;
    let unknown = |id: &str| Problem::not_found("approval", id).of_parameter("after");
    let after = which.after.as_deref().map(|id| Place::parse(id).ok_or_else(|| unknown(id)));
    let filter = RunFilter { agent: which.agent, session: which.session_id, ..RunFilter::default() };
    let found = gateway.runner_of(&caller).pending_approvals(filter, after.transpose()?, limit + 1).await?;
    let shown = found.iter().filter_map(|approval: &Approval| Some((approval.place(), InboxView::of(approval)?)));
    Ok(Json(Page::of(shown.collect(), limit, |(place, _)| place.to_string(), |(_, view)| view)))
}
