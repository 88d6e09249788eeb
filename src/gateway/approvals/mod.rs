//! `/v1/approvals`: the inbox of approvers, who need not be the callers that start runs.

mod view;

use std::time::Duration;

use axum::Json;
use jiff::Timestamp;
use serde::Deserialize;
use toolgate_core::id::{AgentName, SessionId};
use toolgate_ports::RunFilter;
use toolgate_service::{Approval, ApprovalId, NewDecision, TenantRunner};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::view::ApprovalView;
use crate::access::Admitted;
use crate::body::{Body, Path, Query};
use crate::client_trace::ClientTrace;
use crate::pagination::{Page, PageResult, limit, unknown_cursor};
use crate::problem::Problem;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(read)).routes(routes!(decide)).routes(routes!(extend))
}

/// Filters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
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
    responses((status = 200, description = "A page of approvals", body = Page<ApprovalView>)),
)]
async fn list(Query(which): Query<ListParams>, runner: Admitted<TenantRunner>) -> PageResult<ApprovalView> {
    let limit = limit(which.limit)?;
    let unknown = |id: &str| unknown_cursor("approval", id);
    let after = which.after.as_deref().map(|id| ApprovalId::parse(id).ok_or_else(|| unknown(id)));
    let filter = RunFilter { agent: which.agent, session: which.session_id, ..RunFilter::default() };
    let found = runner.pending_approvals(filter, after.transpose()?, limit + 1).await?;
    let shown = found.iter().filter_map(|approval: &Approval| Some((approval.id(), ApprovalView::new(approval)?)));
    Ok(Json(Page::new(shown.collect(), limit, |(place, _)| place.to_string(), |(_, view)| view)))
}

/// Retrieve an approval
///
/// Also returns approvals that are decided, expired or withdrawn.
#[utoipa::path(
    get, path = "/v1/approvals/{approval}", tag = "approvals", operation_id = "readApproval",
    responses((status = 200, description = "The approval", body = ApprovalView)),
)]
async fn read(Path(approval): Path<String>, runner: Admitted<TenantRunner>) -> Result<Json<ApprovalView>, Problem> {
    approval_view(&runner.approval(&approval).await?)
}

/// The response with an approval.
fn approval_view(approval: &Approval) -> Result<Json<ApprovalView>, Problem> {
    ApprovalView::new(approval).map(Json).ok_or_else(|| Problem::not_found("approval", &approval.id().to_string()))
}

/// Decide an approval
///
/// Approves or denies a call. The run resumes in the background; the response does not wait for it. Repeating the same
/// decision has no further effect. If another decision was made before, the code is `conflict`; if the approval is no
/// longer pending, it is `gone`.
#[utoipa::path(
    post, path = "/v1/approvals/{approval}/decision", tag = "approvals", operation_id = "decideApproval",
    request_body = NewDecision,
    responses((status = 200, description = "The approval as it is now", body = ApprovalView)),
)]
async fn decide(
    runner: TenantRunner,
    ClientTrace(trace): ClientTrace,
    Path(id): Path<String>,
    Body(decision): Body<NewDecision>,
) -> Result<Json<ApprovalView>, Problem> {
    let decided = runner.decide(&id, decision, trace).await?;
    approval_view(&decided)
}

/// An extension: exactly one of `expires_at` and `seconds`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Extension {
    /// The new deadline.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// The new deadline, in seconds from now.
    #[schema(minimum = 1)]
    seconds: Option<u64>,
}

/// Extend the deadline of an approval
#[utoipa::path(
    post, path = "/v1/approvals/{approval}/extend", tag = "approvals", operation_id = "extendApproval",
    request_body = Extension,
    responses((status = 200, description = "The approval as it is now", body = ApprovalView)),
)]
async fn extend(
    runner: TenantRunner,
    Path(id): Path<String>,
    Body(extension): Body<Extension>,
) -> Result<Json<ApprovalView>, Problem> {
    let until = extension.deadline(runner.now())?;
    approval_view(&runner.extend(&id, until).await?)
}

impl Extension {
    fn deadline(&self, now: Timestamp) -> Result<Timestamp, Problem> {
        match (self.expires_at, self.seconds) {
            (Some(until), None) => Ok(until),
            (None, Some(seconds)) => now
                .checked_add(Duration::from_secs(seconds))
                .map_err(|_| Problem::invalid("/seconds", "this is too many seconds")),
            _ => Err(Problem::invalid("", "give exactly one of `expires_at` and `seconds`")),
        }
    }
}
