//! `/v1/approval-grants`: grants.

mod create;
mod list;
mod revoke;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(create::create, list::list)).routes(routes!(revoke::revoke))
}
