//! `GET /v1/runs/{run}/messages`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use toolgate_service::Scope;
use utoipa::IntoParams;

use super::view::MessageView;
use crate::access::{Authenticated, ReadPermit};
use crate::body::{Path, Query};
use crate::pagination::{Page, limit};
use crate::problem::Problem;
use crate::state::Gateway;

/// The page of messages.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::runs) struct ListParams {
    /// The number of messages to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// A cursor: messages after this one. Pass the `last_id` of the previous page.
    #[param(maximum = 4294967295_i64)]
    after: Option<u32>,
}

/// List the messages of a run
///
/// Returns messages, oldest first. They include those of the current turn: its calls, and the results so far.
#[utoipa::path(
    get, path = "/v1/runs/{run}/messages", tag = "runs", operation_id = "listMessages",
    params(("run" = String, Path, description = "The run's id"), ListParams),
    responses(
        (status = 200, description = "A page of messages", body = Page<MessageView>),
    ),
)]
pub(in crate::runs) async fn list(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(run): Path<String>,
    Query(which): Query<ListParams>,
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
