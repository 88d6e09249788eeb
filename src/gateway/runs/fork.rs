//! `POST /v1/runs/{run}/fork`

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::asked::{Asked, Quoting};
use super::events::FrameDescription;
use super::view::RunView;
use crate::core::chat::Message;
use crate::core::run::TighterLimits;
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::{Body, Path};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;
use crate::runner::Fork;

/// A run to be copied.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Fork)]
pub(super) struct NewFork {
    /// How many facts of its journal are copied. Without it, as many as leave the new run something to do: its failure, its
    /// denial or its last answer is not copied, unless a `message` replies to that answer.
    #[schema(minimum = 1)]
    at: Option<u64>,
    /// Something to say to the new run.
    message: Option<String>,
    /// Limits of the new run, within its agent's; those that are not named are the other run's. Nothing that the other run
    /// used counts.
    #[serde(default)]
    #[schema(value_type = super::limits::LimitsDescription)]
    limits: TighterLimits,
    /// Your own facts about the new run, instead of those of the other one.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

/// Begin a new run as another one began
///
/// The other run is not touched. The new run has a budget of its own and asks the model, or waits, before it ends; a position
/// at which it could not is refused. A call that was under way at that point is not made a second time, and what was approved there
/// and did not run yet is asked about again.
#[utoipa::path(
    post, path = "/v1/runs/{run}/fork", tag = "runs", operation_id = "forkRun", request_body = NewFork,
    params(
        ("run" = String, Path, description = "The run to be copied"),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait for the new run to rest; `respond-async`: not at all"),
        Quoting,
    ),
    responses(
        (status = 201, description = "The new run rests, or what it does until then", content((RunView = "application/json"), (FrameDescription = "text/event-stream"))),
        (status = 202, description = "The new run goes on", body = RunView),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn fork(
    State(gateway): State<Gateway>,
    caller: Caller,
    asked: Asked,
    Path(run): Path<String>,
    Body(NewFork { at, message, limits, metadata }): Body<NewFork>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    if asked.quotes() {
        caller.require(Scope::RunsRead)?;
    }
    let runner = gateway.runner_of(&caller);
    let source = runner.run(&run).await?;
    if message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Problem::invalid("/message", "a message needs text"));
    }
    let message = message.map(Message::user);
    let fork = Fork { at, message, limits, metadata, trace: asked.trace.clone(), ..Fork::default() };
    let execution = source.fork(fork).await?;
    let made = runner.run(execution.run.as_str()).await?;
    asked.answer(&gateway, made, execution, StatusCode::CREATED).await
}
