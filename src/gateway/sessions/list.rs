//! `GET /v1/sessions`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use toolgate_core::id::AgentName;
use toolgate_ports::SessionFilter;
use toolgate_service::Scope;
use utoipa::IntoParams;

use super::view::SessionView;
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
    /// Only sessions of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// The number of sessions to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// A cursor: sessions after this one. Pass the `last_id` of the previous page.
    after: Option<String>,
}

/// List sessions
///
/// Returns sessions, newest first by creation time. A run that no other run continued, and that was started without
/// `session_id`, is in no session.
#[utoipa::path(
    get, path = "/v1/sessions", tag = "sessions", operation_id = "listSessions", params(ListParams),
    responses(
        (status = 200, description = "A page of sessions", body = Page<SessionView>),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Query(which): Query<ListParams>,
    _permit: ReadPermit,
) -> Result<Json<Page<SessionView>>, Problem> {
    caller.require(Scope::RunsRead)?;
    let limit = limit(which.limit)?;
    let runner = gateway.runner_of(&caller);
    let before = match &which.after {
        Some(after) => Some(runner.session_row(after).await?.ok_or_else(|| unknown_cursor("session", after))?),
        None => None,
    };
    let before = before.map(|row| (row.created_at, row.id));
    let filter = SessionFilter { agent: which.agent, before, limit: limit + 1, ..SessionFilter::default() };
    let rows = runner.sessions(filter).await?;
    Ok(Json(Page::of(rows, limit, |row| row.id.to_string(), |row| SessionView::of(&runner, row))))
}
