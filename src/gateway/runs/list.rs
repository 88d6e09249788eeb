//! `GET /v1/runs`

use axum::Json;
use serde::Deserialize;
use toolgate_core::id::{AgentName, RunId, SessionId};
use toolgate_core::run::{Status, TriggerKind};
use toolgate_ports::RunFilter;
use toolgate_service::TenantRunner;
use utoipa::IntoParams;

use super::view::SummaryView;
use crate::access::Admitted;
use crate::body::Query;
use crate::pagination::{Page, PageResult, limit, unknown_cursor};

/// Filters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only runs with this status.
    #[param(value_type = Option<super::view::StatusView>, inline)]
    status: Option<Status>,
    /// Only runs of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// Only runs of this session.
    #[param(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// Only runs with this trigger.
    #[param(value_type = Option<super::view::TriggerView>, inline)]
    trigger: Option<TriggerKind>,
    /// Only runs that this schedule started.
    schedule: Option<String>,
    /// The number of runs to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// A cursor: runs after this one. Pass the `last_id` of the previous page.
    #[param(value_type = Option<String>)]
    after: Option<RunId>,
}

/// List runs
///
/// Returns runs, newest first.
#[utoipa::path(
    get, path = "/v1/runs", tag = "runs", operation_id = "listRuns", params(ListParams),
    responses((status = 200, description = "A page of runs", body = Page<SummaryView>)),
)]
pub(super) async fn list(Query(which): Query<ListParams>, runner: Admitted<TenantRunner>) -> PageResult<SummaryView> {
    let limit = limit(which.limit)?;
    if let Some(after) = &which.after
        && runner.row(after.as_str()).await?.is_none()
    {
        return Err(unknown_cursor("run", after.as_str()));
    }
    let filter = RunFilter {
        status: which.status,
        agent: which.agent,
        session: which.session_id,
        trigger: which.trigger,
        schedule: which.schedule,
        before: which.after,
        limit: limit + 1,
        ..RunFilter::default()
    };
    let rows = runner.list(filter).await?;
    Ok(Json(Page::new(
        rows,
        limit,
        |row| row.id.to_string(),
        |row| {
            let has_agent = runner.has_agent(&row.agent);
            SummaryView::new(row, has_agent)
        },
    )))
}
