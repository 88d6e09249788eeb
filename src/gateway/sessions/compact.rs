//! `POST /v1/sessions/{session}/compact`

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use toolgate_service::Scope;
use utoipa::ToSchema;

use super::precondition;
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::idempotency::PlannedRunId;
use crate::problem::Problem;
use crate::runs::events::FrameDescription;
use crate::runs::response_mode::{ResponsePreference, StreamParams};
use crate::runs::view::RunView;
use crate::state::Gateway;

/// A compaction of a session.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Compaction)]
pub(super) struct NewCompaction {
    /// The most tokens at the end of the conversation that stay as they are. Default: `keep_tokens` of the agent.
    keep_tokens: Option<u64>,
}

/// Compact a session
///
/// Starts a run that only replaces the beginning of the conversation with a summary, which a model writes. Its output is
/// the summary; it is empty if there is nothing to replace. Later runs of the session read the summary in place of the
/// replaced messages. The messages of the session do not change.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/compact", tag = "sessions", operation_id = "compactSession", request_body = NewCompaction,
    params(
        ("session" = String, Path, description = "The session's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the session that you saw; if the session has changed since, the request is refused"),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait until the run has ended; `respond-async`: do not wait"),
        StreamParams,
    ),
    responses(
        (status = 201, description = "The run, which has ended; or a stream of its events until then", content((RunView = "application/json"), (FrameDescription = "text/event-stream"))),
        (status = 202, description = "The run, which is still running", body = RunView),
    ),
)]
pub(super) async fn compact(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(session): Path<String>,
    preference: ResponsePreference,
    PlannedRunId(id): PlannedRunId,
    Body(NewCompaction { keep_tokens }): Body<NewCompaction>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    if preference.quotes() {
        caller.require(Scope::RunsRead)?;
    }
    let runner = gateway.runner_of(&caller);
    let session = runner.session(&session).await?;
    let seen = precondition::required(&headers, &session.row)?;
    let execution = session.compact(seen, keep_tokens, id, preference.trace.clone()).await?;
    let run = runner.run(execution.run.as_str()).await?;
    preference.answer(&gateway, run, execution, StatusCode::CREATED).await
}
