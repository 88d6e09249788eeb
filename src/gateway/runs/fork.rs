//! `POST /v1/runs/{run}/fork` and `POST /v1/runs/{run}/retry`: a new run that starts with a copy of another one, beside it or
//! in its place.

use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::chat::Message;
use toolgate_core::id::ModelName;
use toolgate_core::run::TighterLimits;
use toolgate_runner::{Fork, Retry};
use toolgate_service::{RunWebhook, Scope, ServiceError, TenantRun, TenantRunner};
use utoipa::ToSchema;

use super::response_mode::{ResponsePreference, RestedRun, RunningRun};
use crate::body::{Body, Path};
use crate::etag::IfMatch;
use crate::idempotency::PlannedRunId;
use crate::precondition;
use crate::problem::Problem;
use crate::webhooks::NewRunWebhook;

/// A fork to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Fork)]
pub(super) struct NewFork {
    /// The number of journal entries to copy. Default: as many as leave the new run something to do. Its failure, its
    /// denial or its last answer is not copied, unless a `message` replies to that answer.
    #[schema(minimum = 1)]
    at: Option<u64>,
    /// A message to add to the new run.
    message: Option<String>,
    /// Limits of the new run, within its agent's. Limits that are left out are those of the original run. Usage of the
    /// original run does not count.
    #[serde(default)]
    #[schema(value_type = toolgate_service::LimitsDescription)]
    limits: TighterLimits,
    /// Your own data about the new run, in place of the original run's.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// A webhook of the new run alone. That of the original run does not apply to it.
    webhook: Option<NewRunWebhook>,
}

/// Fork a run
///
/// Starts a new run with a copy of the beginning of another one, which does not change. The new run has a budget of its
/// own. It calls the model, or waits, before it ends; a position at which it could not is refused. A call that was in
/// progress at that position is not made a second time. A call that was approved but did not run yet requires approval
/// again.
#[utoipa::path(
    post, path = "/v1/runs/{run}/fork", tag = "runs", operation_id = "forkRun", request_body = NewFork,
    params(IfMatch, ResponsePreference),
    responses((status = 201, response = inline(RestedRun)), (status = 202, response = inline(RunningRun))),
)]
pub(super) async fn fork(
    runner: TenantRunner,
    if_match: IfMatch,
    preference: ResponsePreference,
    PlannedRunId(id): PlannedRunId,
    Path(run): Path<String>,
    Body(NewFork { at, message, limits, metadata, webhook }): Body<NewFork>,
) -> Result<Response, Problem> {
    let (source, message, version) = open_source(&runner, &if_match, &preference, &run, message).await?;
    let trace = preference.trace.clone();
    let id = id.unwrap_or_else(|| runner.fresh_id());
    let fork = Fork { at, version, message, limits, metadata, id: Some(id.clone()), trace, ..Fork::default() };
    let start = source.fork(fork, |error| precondition::unmet(error, version, ServiceError::from));
    let execution = runner.with_webhook(&id, webhook.map(RunWebhook::from), start).await?;
    let made = runner.run(execution.run.as_str()).await?;
    preference.answer(made, execution, StatusCode::CREATED).await
}

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
    /// The model of the new run, one of those that the agent allows. It has no effect if the original run has a reply: the
    /// model that wrote it goes on, and the new run has its name. Default: that of the original run.
    #[schema(value_type = Option<String>)]
    model: Option<ModelName>,
    /// Your own data about the new run, in place of the original run's.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// A webhook of the new run alone. That of the original run does not apply to it.
    webhook: Option<NewRunWebhook>,
}

/// Retry a run
///
/// Runs an ended run again, whatever its ending, in the same session. The new run begins like a fork without a position:
/// it calls the model again, or waits, with a budget of its own. Its messages replace those of the original run in the
/// conversation of the session. The original run does not change; it has to be the latest of its session, and is
/// otherwise refused with `conflict`: fork it.
#[utoipa::path(
    post, path = "/v1/runs/{run}/retry", tag = "runs", operation_id = "retryRun", request_body = NewRetry,
    params(IfMatch, ResponsePreference),
    responses((status = 201, response = inline(RestedRun)), (status = 202, response = inline(RunningRun))),
)]
pub(super) async fn retry(
    runner: TenantRunner,
    if_match: IfMatch,
    preference: ResponsePreference,
    PlannedRunId(id): PlannedRunId,
    Path(run): Path<String>,
    Body(NewRetry { message, limits, model, metadata, webhook }): Body<NewRetry>,
) -> Result<Response, Problem> {
    let (source, message, version) = open_source(&runner, &if_match, &preference, &run, message).await?;
    let trace = preference.trace.clone();
    let id = id.unwrap_or_else(|| runner.fresh_id());
    let retry = Retry { version, message, limits, model, metadata, id: Some(id.clone()), trace, ..Retry::default() };
    let start = source.retry(retry, |error| precondition::unmet(error, version, ServiceError::from));
    let execution = runner.with_webhook(&id, webhook.map(RunWebhook::from), start).await?;
    let made = runner.run(execution.run.as_str()).await?;
    preference.answer(made, execution, StatusCode::CREATED).await
}

/// The run to copy, the message to add, and the version of the run that the request requires.
async fn open_source(
    runner: &TenantRunner,
    if_match: &IfMatch,
    preference: &ResponsePreference,
    run: &str,
    message: Option<String>,
) -> Result<(TenantRun, Option<Message>, Option<u64>), Problem> {
    if preference.quotes() {
        runner.caller().require(Scope::RunsRead)?;
    }
    let source = runner.run(run).await?;
    if message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Problem::invalid("/message", "a message needs text"));
    }
    let version = if_match.of_run(&source.row)?;
    Ok((source, message.map(Message::user), version))
}
