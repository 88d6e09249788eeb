//! `/v1/servers`: the MCP servers, which all tenants share.

mod list;
mod read;
mod refresh;
mod restart;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(read::read))
        .routes(routes!(refresh::refresh))
        .routes(routes!(restart::restart))
}
