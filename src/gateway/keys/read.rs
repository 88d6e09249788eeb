//! `GET /v1/keys/{key}`

use axum::Json;
use axum::extract::State;
use toolgate_service::Scope;

use super::view::KeyView;
use crate::access::Authenticated;
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Retrieve an API key
///
/// Returns an API key of your tenant, without its secret.
#[utoipa::path(
    get, path = "/v1/keys/{key}", tag = "keys", operation_id = "readKey",
    params(("key" = String, Path, description = "The key's id")),
    responses(
        (status = 200, description = "The key", body = KeyView),
    ),
)]
pub(super) async fn read(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(key): Path<String>,
) -> Result<Json<KeyView>, Problem> {
    caller.require(Scope::Admin)?;
    let found = gateway.access().api_keys()?.key(&caller.tenant, &key).await?;
    Ok(Json(KeyView::of(found.ok_or_else(|| Problem::not_found("key", &key))?)))
}
