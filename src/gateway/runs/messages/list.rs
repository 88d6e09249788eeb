//! `GET /v1/runs/{run}/messages`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view::MessageView;
use crate::gateway::access::{Caller, ReadPermit, Scope};
use crate::gateway::body::{Path, Query};
use crate::gateway::page::{Page, limit};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// Which messages.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::gateway::runs) struct Which {
    /// How many: 1 to 100, and 20 unless something else is said.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Those that come after this one: `last_id` of the page before.
    #[param(maximum = 4294967295_i64)]
    after: Option<u32>,
}

/// Read a run's conversation, oldest first
///
/// With the turn that is under way: its calls, and the results that are there.
#[utoipa::path(
    get, path = "/v1/runs/{run}/messages", tag = "runs", operation_id = "listMessages",
    params(("run" = String, Path, description = "The run"), Which),
    responses(
        (status = 200, description = "A page of messages", body = Page<MessageView>),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(in crate::gateway::runs) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(run): Path<String>,
    Query(which): Query<Which>,
    _permit: ReadPermit,
) -> Result<Json<Page<MessageView>>, Problem> {
    caller.require(Scope::RunsRead)?;
    let limit = limit(which.limit)?;
    let run = gateway.runner_of(&caller).run(&run).await?;
    let messages = run.load().await?.messages();
    let from = which.after.map_or(0, |after| after as usize + 1);
    let found = messages.iter().enumerate().skip(from).take(limit + 1).collect();
    Ok(Json(Page::of(found, limit, |(index, _)| index.to_string(), |(index, message)| MessageView::of(index, message))))
}
