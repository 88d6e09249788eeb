//! `POST /v1/runs/{run}/retry`

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::chat::Message;
use toolgate_core::run::TighterLimits;
use toolgate_runner::Retry;
use toolgate_service::{Scope, ServiceError};
use utoipa::ToSchema;

use super::events::FrameDescription;
use super::precondition;
use super::response_mode::{ResponsePreference, StreamParams};
use super::view::RunView;
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::idempotency::PlannedRunId;
use crate::problem::Problem;
use crate::state::Gateway;

/// A retry to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Retry)]
pub(super) struct NewRetry {
    /// A message to add to the new run. After an answer, the new run replies to it; without a message, it answers again.
    message: Option<String>,
    /// Limits of the new run, within its agent's. Limits that are left out are those of the original run. Usage of the
    /// original run does not count.
    #[serde(default)]
    #[schema(value_type = toolgate_service::LimitsDescription)]
    limits: TighterLimits,
    /// Your own data about the new run, in place of the original run's.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

/// Retry a run
///
/// Runs an ended run again, whatever its ending, in the same session. The new run begins like a fork without a position:
/// it calls the model again, or waits, with a budget of its own. Its messages replace those of the original run in the
/// conversation of the session. The original run does not change; it has to be the latest of its session, and is
/// otherwise refused with `conflict`: fork it.
#[utoipa::path(
    post, path = "/v1/runs/{run}/retry", tag = "runs", operation_id = "retryRun", request_body = NewRetry,
    params(
        ("run" = String, Path, description = "The id of the run to retry"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the run that you saw; if the run has changed since, the request is refused"),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait until the new run is pending or has ended; `respond-async`: do not wait"),
        StreamParams,
    ),
    responses(
        (status = 201, description = "The new run, which is pending or has ended; or a stream of its events until then", content((RunView = "application/json"), (FrameDescription = "text/event-stream"))),
        (status = 202, description = "The new run, which is still running", body = RunView),
    ),
)]
pub(super) async fn retry(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    preference: ResponsePreference,
    PlannedRunId(id): PlannedRunId,
    Path(run): Path<String>,
    Body(NewRetry { message, limits, metadata }): Body<NewRetry>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    if preference.quotes() {
        caller.require(Scope::RunsRead)?;
    }
    let runner = gateway.runner_of(&caller);
    let source = runner.run(&run).await?;
    if message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Problem::invalid("/message", "a message needs text"));
    }
    let message = message.map(Message::user);
    let version = precondition::required(&headers, &source.row)?;
    let retry = Retry { version, message, limits, metadata, id, trace: preference.trace.clone(), ..Retry::default() };
    let execution = source.retry(retry, |error| precondition::unmet(error, version, ServiceError::from)).await?;
    let made = runner.run(execution.run.as_str()).await?;
    preference.answer(&gateway, made, execution, StatusCode::CREATED).await
}
