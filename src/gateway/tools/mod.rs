//! `/v1/tools`: the tools of agents, and tool calls without a model.

mod call;
mod list;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list::list)).routes(routes!(call::call))
}
