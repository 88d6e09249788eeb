//! `/v1/approvals`: the inbox of approvers, who need not be the callers that start runs.

mod decide;
mod extend;
mod list;
mod read;
pub(super) mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(read::read))
        .routes(routes!(decide::decide))
        .routes(routes!(extend::extend))
}
