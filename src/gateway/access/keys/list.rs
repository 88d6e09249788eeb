//! `GET /v1/keys`

use axum::Json;
use axum::extract::State;

use super::keys;
use super::view::KeyView;
use crate::gateway::access::{Caller, ReadPermit, Scope};
use crate::gateway::body::Query;
use crate::gateway::page::{Page, Paging, behind, limit};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// List the keys of your tenant, newest first
#[utoipa::path(
    get, path = "/v1/keys", tag = "keys", operation_id = "listKeys", params(Paging),
    responses(
        (status = 200, description = "A page of keys", body = Page<KeyView>),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(which): Query<Paging>,
    _permit: ReadPermit,
) -> Result<Json<Page<KeyView>>, Problem> {
    caller.require(Scope::Admin)?;
    let limit = limit(which.limit)?;
    let all = keys(&gateway)?.keys(&caller.tenant).await?;
    let found = behind(all, which.after.as_deref(), "key", |key| key.id.as_str())?;
    Ok(Json(Page::of(found, limit, |key| key.id.to_string(), KeyView::of)))
}
