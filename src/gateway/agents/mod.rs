//! `/v1/agents`: the agents that a run can use. Agents are configuration, which all tenants share.

mod list;
mod read;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list::list)).routes(routes!(read::read))
}
