//! `POST /v1/runs/{run}/messages`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::{Body, Path};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::runs::view::RunView;
use crate::gateway::state::Gateway;

/// Something to say to a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMessage)]
pub(in crate::gateway::runs) struct NewMessage {
    /// What is said, as the user.
    #[schema(example = "Look at last week too")]
    text: String,
}

/// Say something to a run
///
/// A run that is at work hears it at its next turn; one that is pending keeps it until it goes on. Said twice is heard twice,
/// unless an `Idempotency-Key` says that it is one.
#[utoipa::path(
    post, path = "/v1/runs/{run}/messages", tag = "runs", operation_id = "addMessage", request_body = NewMessage,
    params(("run" = String, Path, description = "The run")),
    responses(
        (status = 202, description = "It was taken, and will be heard", body = RunView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(in crate::gateway::runs) async fn say(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(run): Path<String>,
    Body(NewMessage { text }): Body<NewMessage>,
) -> Result<(StatusCode, Json<RunView>), Problem> {
    caller.require(Scope::RunsWrite)?;
    if text.trim().is_empty() {
        return Err(Problem::invalid("/text", "a message needs text"));
    }
    let run = gateway.runner_of(&caller).run(&run).await?;
    run.say(&text).await?;
    Ok((StatusCode::ACCEPTED, Json(run.view().await?)))
}
