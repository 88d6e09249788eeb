//! `/v1/keys`: the API keys of the caller's tenant.

mod create;
mod list;
mod read;
mod revoke;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(create::create, list::list)).routes(routes!(read::read, revoke::revoke))
}
