//! `GET /v1/keys`

use axum::Json;
use axum::extract::State;
use toolgate_core::id::KeyId;
use toolgate_ports::KeyFilter;
use toolgate_service::Scope;

use super::view::KeyView;
use crate::access::{Authenticated, ReadPermit};
use crate::body::Query;
use crate::pagination::{Page, Paging, limit, unknown_cursor};
use crate::problem::Problem;
use crate::state::Gateway;

/// List API keys
///
/// Returns the API keys of your tenant, newest first.
#[utoipa::path(
    get, path = "/v1/keys", tag = "keys", operation_id = "listKeys", params(Paging),
    responses(
        (status = 200, description = "A page of keys", body = Page<KeyView>),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Query(which): Query<Paging>,
    _permit: ReadPermit,
) -> Result<Json<Page<KeyView>>, Problem> {
    caller.require(Scope::Admin)?;
    let limit = limit(which.limit)?;
    let keys = gateway.access().api_keys()?;
    if let Some(after) = &which.after
        && keys.key(&caller.tenant, after).await?.is_none()
    {
        return Err(unknown_cursor("key", after));
    }
    let (tenant, after) = (Some(caller.tenant.clone()), which.after.map(KeyId::from));
    let found = keys.keys(&KeyFilter { id: None, tenant, after, limit: Some(limit + 1) }).await?;
    Ok(Json(Page::of(found, limit, |key| key.id.to_string(), KeyView::of)))
}
