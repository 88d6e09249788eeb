//! `DELETE /v1/sessions/{session}`

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use toolgate_service::Scope;

use super::precondition;
use crate::access::Authenticated;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Delete a session
///
/// Deletes the session and the data of its runs permanently, and revokes its grants. Its id remains known: retrieving it
/// returns `gone`, and no other session takes it. Cancel its live run first. Repeat a request that failed halfway.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}", tag = "sessions", operation_id = "deleteSession",
    params(
        ("session" = String, Path, description = "The session's id"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the session that you saw; if the session has changed since, the request is refused"),
    ),
    responses(
        (status = 204, description = "The session is deleted, now or by an earlier request"),
    ),
)]
pub(super) async fn delete(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    headers: HeaderMap,
    Path(session): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.require(Scope::RunsWrite)?;
    let session = gateway.runner_of(&caller).session_even_if_deleted(&session).await?;
    let seen = match session.row.deleted_at {
        // A repeat only finishes the deletion.
        Some(_) => None,
        None => precondition::required(&headers, &session.row)?,
    };
    session.delete(seen).await?;
    Ok(StatusCode::NO_CONTENT)
}
