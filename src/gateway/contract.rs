//! What the gateway promises: its OpenAPI description, made from the handlers and views themselves.

use axum::routing::get;
use axum::{Json, Router};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

use super::health;
use super::problem::ProblemView;
use super::state::{Gateway, api};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "toolgate",
        description = "Runs of agents: start them, give them what they are owed, watch them. A run that waits for you is \
                       `pending`; `pending[]` names what it is owed.",
        license(name = "Apache-2.0")
    ),
    components(schemas(ProblemView))
)]
struct Head;

/// What stands before the paths.
pub(super) fn head() -> OpenApi {
    Head::openapi()
}

/// The description of everything.
pub fn description() -> OpenApi {
    api().merge(health::routes()).into_openapi()
}

/// The description, for whoever reads it.
pub(super) fn routes(api: OpenApi) -> Router<Gateway> {
    Router::new().route("/openapi.json", get(|| async move { Json(api) }))
}
