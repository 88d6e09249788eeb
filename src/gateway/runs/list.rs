//! `GET /v1/runs`

use axum::Json;
use toolgate_core::id::RunId;
use toolgate_ports::{ListOrder, RunFilter, RunRow};
use toolgate_service::{ServiceError, TenantRunner};

use super::list_filter::{ListParams, RequestedOrder};
use super::view::SummaryView;
use crate::access::Admitted;
use crate::body::Query;
use crate::pagination::{Page, PageResult, invalid_parameter, limit};
use crate::problem::Problem;

/// List runs
///
/// Returns runs, newest first. Filters are combined: a run has to match all of them. `title`, `metadata`, `created_after`
/// and `created_before` read the runs that match the other filters one by one until the page is full.
#[utoipa::path(
    get, path = "/v1/runs", tag = "runs", operation_id = "listRuns", params(ListParams),
    responses((status = 200, description = "A page of runs", body = Page<SummaryView>)),
)]
pub(super) async fn list(Query(which): Query<ListParams>, runner: Admitted<TenantRunner>) -> PageResult<SummaryView> {
    let limit = limit(which.limit)?;
    if which.after.is_some() && which.before.is_some() {
        return Err(invalid_parameter("before", "and `after` exclude each other"));
    }
    for (name, cursor) in [("after", &which.after), ("before", &which.before)] {
        check_cursor(&runner, name, cursor.as_ref()).await?;
    }
    let is_before = which.before.is_some();
    // The page before a cursor is read from the cursor on.
    let is_newest_first = (which.order == RequestedOrder::Desc) != is_before;
    let cursor = which.after.clone().or_else(|| which.before.clone());
    let (order, before, after) = match is_newest_first {
        true => (ListOrder::NewestFirst, cursor, None),
        false => (ListOrder::OldestFirst, None, cursor),
    };
    let filter = RunFilter { order, before, after, limit: limit + 1, ..which.filter()? };
    let rows = runner.list(filter).await?;
    let id = |row: &RunRow| row.id.to_string();
    let view = |row: RunRow| {
        let has_agent = runner.has_agent(&row.agent);
        SummaryView::new(row, has_agent)
    };
    Ok(Json(match is_before {
        true => Page::before(rows, limit, id, view),
        false => Page::new(rows, limit, id, view),
    }))
}

/// Refuses a cursor that names no run.
async fn check_cursor(runner: &TenantRunner, name: &str, cursor: Option<&RunId>) -> Result<(), Problem> {
    match cursor {
        Some(id) if runner.row(id.as_str()).await?.is_none() => {
            Err(ServiceError::not_found("run", id.as_str()).of_parameter(name).into())
        }
        Some(_) | None => Ok(()),
    }
}
