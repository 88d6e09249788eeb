//! `POST /v1/sessions/{session}/runs`

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use toolgate_service::Scope;

use super::precondition;
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::idempotency::PlannedRunId;
use crate::problem::Problem;
use crate::runs::create::{NewRun, start_run};
use crate::runs::events::FrameDescription;
use crate::runs::response_mode::{ResponsePreference, StreamParams};
use crate::runs::view::RunView;
use crate::state::Gateway;

/// Start a run in a session
///
/// As *start a run*, in a session that exists. Agent and principal are those of the session by default.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/runs", tag = "sessions", operation_id = "createSessionRun", request_body = NewRun,
    params(
        ("session" = String, Path, description = "The session's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the session that you saw; if the session has changed since, the request is refused"),
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: how long to wait until the run is pending or has ended; `respond-async`: do not wait"),
        StreamParams,
    ),
    responses(
        (status = 201, description = "The run, which is pending or has ended; or a stream of its events until then", content((RunView = "application/json"), (FrameDescription = "text/event-stream"))),
        (status = 202, description = "The run, which is still running", body = RunView),
    ),
)]
pub(super) async fn start(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(session): Path<String>,
    preference: ResponsePreference,
    PlannedRunId(id): PlannedRunId,
    Body(new): Body<NewRun>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    let session = gateway.runner_of(&caller).session(&session).await?;
    let seen = precondition::required(&headers, &session.row)?;
    start_run(&gateway, &caller, preference, id, new.in_session(&session)?, seen).await
}
