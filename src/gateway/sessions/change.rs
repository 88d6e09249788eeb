//! `PATCH /v1/sessions/{session}`

use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_runner::{MemberChange, SessionChange, SessionLimitsChange};
use toolgate_service::Scope;
use utoipa::ToSchema;

use super::precondition;
use super::view::{SessionLimitsView, SessionView, tag, tagged};
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
    /// Limits to change, which hold from the next run on; `null` as a member removes it, and `null` in place of the object
    /// removes all.
    #[serde(default)]
    #[schema(value_type = Option<SessionLimitsView>)]
    limits: MemberChange<SessionLimitsChange>,
    /// Seconds without use after which the next run does not continue the conversation; `null` for the agent's setting.
    #[serde(default)]
    #[schema(value_type = Option<u64>)]
    expire_after_s: MemberChange<u64>,
    /// The permission mode of the next runs; `null` for the agent's policy.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    mode: MemberChange<String>,
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
    Body(change): Body<SessionChangeBody>,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsWrite)?;
    let runner = gateway.runner_of(&caller);
    let session = runner.session(&session).await?;
    let seen = precondition::required(&headers, &session.row)?;
    let SessionChangeBody { title, metadata, limits, expire_after_s, mode } = change;
    let change = SessionChange { title, metadata, limits, expire_after_s, mode };
    let row = session.change(change, seen).await?.row;
    // The response has all of the session, not only what was changed.
    Ok(match caller.scopes.contains(Scope::RunsRead) {
        true => tagged(&runner, row).into_response(),
        false => (StatusCode::NO_CONTENT, [(ETAG, tag(row.version, row.head.as_ref()))]).into_response(),
    })
}
