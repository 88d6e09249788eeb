//! `/v1/sessions`: conversations of successive runs.

mod change;
mod compact;
mod create;
mod delete;
mod list;
mod messages;
mod precondition;
mod read;
mod start;
pub(super) mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(create::create, list::list))
        .routes(routes!(read::read, change::change, delete::delete))
        .routes(routes!(messages::list))
        .routes(routes!(start::start))
        .routes(routes!(compact::compact))
}
