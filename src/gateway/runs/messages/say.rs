//! `POST /v1/runs/{run}/messages`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use toolgate_service::Scope;
use utoipa::ToSchema;

use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::problem::Problem;
use crate::runs::view::RunView;
use crate::state::Gateway;

/// A message to add to a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMessage)]
pub(in crate::runs) struct NewMessage {
    /// The text, as the user's message.
    #[schema(example = "Look at last week too")]
    text: String,
}

/// Add a message
///
/// A running run reads the message at its next turn; a pending run stores it until it resumes. A repeated request adds
/// the message again, unless both have the same `Idempotency-Key`.
#[utoipa::path(
    post, path = "/v1/runs/{run}/messages", tag = "runs", operation_id = "addMessage", request_body = NewMessage,
    params(("run" = String, Path, description = "The run's id")),
    responses(
        (status = 202, description = "The message is stored, and the run will read it", body = RunView),
    ),
)]
pub(in crate::runs) async fn say(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(run): Path<String>,
    Body(NewMessage { text }): Body<NewMessage>,
) -> Result<(StatusCode, Json<RunView>), Problem> {
    caller.require(Scope::RunsWrite)?;
    if text.trim().is_empty() {
        return Err(Problem::invalid("/text", "a message needs text"));
    }
    let run = gateway.runner_of(&caller).run(&run).await?;
    run.add_message(&text).await?;
    Ok((StatusCode::ACCEPTED, Json(RunView::read(&run).await?)))
}
