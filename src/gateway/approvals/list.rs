//! `GET /v1/approvals`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use toolgate_core::id::{AgentName, SessionId};
use toolgate_ports::RunFilter;
use toolgate_service::{Approval, ApprovalId, Scope};
use utoipa::{IntoParams, ToSchema};

use super::view::ApprovalView;
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
    /// Only approvals with this status. Approvals with another status are retrieved one by one: journals keep them, but
    /// no list does.
    #[param(inline)]
    #[serde(default)]
    #[allow(dead_code)] // there is one, so there is nothing to choose
    status: ListedStatus,
    /// Only approvals of runs of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// Only approvals of runs of this session.
    #[param(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// The number of approvals to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// A cursor: approvals after this one. Pass the `last_id` of the previous page.
    after: Option<String>,
}

/// The statuses that can be listed.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ListedStatus {
    /// A decision is missing.
    #[default]
    Pending,
}

/// List pending approvals
///
/// Approvals of the newest run come first; those of one run are in the order in which they were requested. Approvals
/// that expired a moment ago may still be listed, as `expired`.
#[utoipa::path(
    get, path = "/v1/approvals", tag = "approvals", operation_id = "listApprovals", params(ListParams),
    responses(
        (status = 200, description = "A page of approvals", body = Page<ApprovalView>),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Query(which): Query<ListParams>,
    _permit: ReadPermit,
) -> Result<Json<Page<ApprovalView>>, Problem> {
    caller.require(Scope::ApprovalsRead)?;
    let limit = limit(which.limit)?;
    let unknown = |id: &str| unknown_cursor("approval", id);
    let after = which.after.as_deref().map(|id| ApprovalId::parse(id).ok_or_else(|| unknown(id)));
    let filter = RunFilter { agent: which.agent, session: which.session_id, ..RunFilter::default() };
    let found = gateway.runner_of(&caller).pending_approvals(filter, after.transpose()?, limit + 1).await?;
    let shown = found.iter().filter_map(|approval: &Approval| Some((approval.id(), ApprovalView::of(approval)?)));
    Ok(Json(Page::of(shown.collect(), limit, |(place, _)| place.to_string(), |(_, view)| view)))
}
