//! `GET /v1/sessions/{session}`

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use toolgate_service::Scope;

use super::view::{SessionView, tag};
use crate::access::{Authenticated, ReadPermit};
use crate::body::Path;
use crate::etag;
use crate::problem::Problem;
use crate::state::Gateway;

/// Retrieve a session
#[utoipa::path(
    get, path = "/v1/sessions/{session}", tag = "sessions", operation_id = "readSession",
    params(("session" = String, Path, description = "The session's id"), ("If-None-Match" = Option<String>, Header, description = "The `ETag` that you have")),
    responses(
        (status = 200, description = "The session", body = SessionView),
        (status = 304, description = "Neither the session nor its latest run has changed"),
    ),
)]
pub(super) async fn read(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(session): Path<String>,
    _permit: ReadPermit,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsRead)?;
    let runner = gateway.runner_of(&caller);
    let row = runner.session(&session).await?.row;
    Ok(etag::unless_known(&headers, tag(row.version, row.head.as_ref()), SessionView::of(&runner, row)))
}
