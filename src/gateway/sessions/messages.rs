//! `GET /v1/sessions/{session}/messages`

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use toolgate_core::id::RunId;
use toolgate_runner::SessionMessage;
use toolgate_service::Scope;
use utoipa::ToSchema;

use crate::access::{Authenticated, ReadPermit};
use crate::body::{Path, Query};
use crate::pagination::{Page, limit};
use crate::problem::Problem;
use crate::runs::messages::{ListParams, MessageView};
use crate::state::Gateway;

/// A message of a session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SessionMessage)]
pub(super) struct SessionMessageView {
    /// The run that added the message.
    #[schema(value_type = String)]
    run_id: RunId,
    /// The message. Its `index` is the position among the messages of the session.
    #[serde(flatten)]
    message: MessageView,
}

/// List the messages of a session
///
/// Returns the conversation, oldest first. An ended run adds its messages up to its last answered turn, as the next run
/// reads them; a live run adds its messages so far, with the calls of its current turn.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/messages", tag = "sessions", operation_id = "listSessionMessages",
    params(("session" = String, Path, description = "The session's id"), ListParams),
    responses(
        (status = 200, description = "A page of messages", body = Page<SessionMessageView>),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(session): Path<String>,
    Query(which): Query<ListParams>,
    _permit: ReadPermit,
) -> Result<Json<Page<SessionMessageView>>, Problem> {
    caller.require(Scope::RunsRead)?;
    let limit = limit(which.limit)?;
    let messages = gateway.runner_of(&caller).session(&session).await?.messages(which.from(), limit + 1).await?;
    let found = (which.from()..).zip(messages).collect();
    let view = |(index, SessionMessage { run, message })| SessionMessageView {
        run_id: run,
        message: MessageView::of(index, &message),
    };
    Ok(Json(Page::of(found, limit, |(index, _)| index.to_string(), view)))
}
