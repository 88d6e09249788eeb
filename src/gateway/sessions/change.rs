//! `PATCH /v1/sessions/{session}`

use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_runner::{MemberChange, SessionChange};
use toolgate_service::Scope;
use utoipa::ToSchema;

use super::precondition;
use super::view::{SessionView, tag, tagged};
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::problem::Problem;
use crate::state::Gateway;

/// A merge patch of a session (RFC 7396). Fields that are left out do not change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionChange)]
pub(super) struct SessionChangeBody {
    /// The title; `null` removes it, and the next message gives a new one.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    title: MemberChange<String>,
    /// Members to change; `null` as a member removes it, and `null` in place of the object removes all.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: MemberChange<Map<String, Value>>,
}

/// Update a session
#[utoipa::path(
    patch, path = "/v1/sessions/{session}", tag = "sessions", operation_id = "changeSession",
    request_body(content((SessionChangeBody = "application/json"), (SessionChangeBody = "application/merge-patch+json"))),
    params(
        ("session" = String, Path, description = "The session's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the session that you saw; if the session has changed since, the request is refused"),
    ),
    responses(
        (status = 200, description = "The session as it is now", body = SessionView),
        (status = 204, description = "The session is changed; these credentials lack the scope `runs:read`"),
    ),
)]
pub(super) async fn change(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(session): Path<String>,
    Body(SessionChangeBody { title, metadata }): Body<SessionChangeBody>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    let session = gateway.runner_of(&caller).session(&session).await?;
    let seen = precondition::required(&headers, &session.row)?;
    let row = session.change(SessionChange { title, metadata }, seen).await?.row;
    // The response has all of the session, not only what was changed.
    Ok(match caller.scopes.contains(Scope::RunsRead) {
        true => tagged(row).into_response(),
        false => (StatusCode::NO_CONTENT, [(ETAG, tag(row.version, row.head.as_ref()))]).into_response(),
    })
}
