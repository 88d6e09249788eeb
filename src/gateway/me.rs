//! `/v1/me`: the caller as its credentials identify it. It needs no scope, so that any credentials can be checked with it.

use axum::Json;
use serde::Serialize;
use toolgate_service::Scope;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Authenticated;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(read))
}

/// The caller.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Me)]
struct MeView {
    /// Always `me`.
    object: &'static str,
    /// The caller's name, as runs, decisions and logs show it.
    #[schema(example = "key:ci")]
    name: String,
    /// The tenant whose resources the caller sees.
    #[schema(example = "default")]
    tenant: String,
    /// The principal on whose behalf all runs of the caller act; null if the caller names one for each run.
    principal: Option<String>,
    /// What the caller may do.
    scopes: Vec<Scope>,
}

/// Retrieve the caller
///
/// Returns what the credentials of the request stand for. Any valid credentials may do this.
#[utoipa::path(
    get, path = "/v1/me", tag = "keys", operation_id = "readMe",
    responses((status = 200, description = "The caller", body = MeView)),
)]
async fn read(Authenticated(caller): Authenticated) -> Json<MeView> {
    Json(MeView {
        object: "me",
        name: caller.name.to_string(),
        tenant: caller.tenant.to_string(),
        principal: caller.principal.map(|principal| principal.to_string()),
        scopes: caller.scopes.iter().collect(),
    })
}
