//! `/v1/runs`: one file an endpoint.

mod cancel;
mod create;
mod given;
mod list;
mod pending;
mod read;
mod resume;
mod tools;
mod view;
mod wait;

pub(in crate::gateway) use pending::approval_id;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(create::create, list::list))
        .routes(routes!(read::read))
        .routes(routes!(resume::resume))
        .routes(routes!(cancel::cancel))
}
