//! `DELETE /v1/keys/{key}`

use axum::Json;
use axum::extract::State;
use toolgate_service::Scope;

use super::view::KeyView;
use crate::access::Authenticated;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Revoke an API key
///
/// The key is invalid from now on. Other processes on the same store reject it within seconds. Revoking a key twice has
/// no further effect.
#[utoipa::path(
    delete, path = "/v1/keys/{key}", tag = "keys", operation_id = "revokeKey",
    params(("key" = String, Path, description = "The key's id")),
    responses(
        (status = 200, description = "The revoked key", body = KeyView),
    ),
)]
pub(super) async fn revoke(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(key): Path<String>,
) -> Result<Json<KeyView>, Problem> {
    caller.require(Scope::Admin)?;
    let revoked = gateway.access().api_keys()?.revoke(&caller.tenant, &key, &caller.name).await;
    let revoked = revoked?.ok_or_else(|| Problem::not_found("key", &key))?;
    Ok(Json(KeyView::of(revoked)))
}
