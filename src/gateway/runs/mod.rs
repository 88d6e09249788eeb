//! `/v1/runs`: the operations on runs, and the views they share.

mod cancel;
mod compensation;
pub(super) mod create;
mod delete;
pub(super) mod events;
pub(super) mod failure;
mod feedback;
mod fork;
mod input;
mod list;
mod list_filter;
pub(super) mod messages;
mod pause;
pub(super) mod pending;
pub(super) mod read;
pub(super) mod response_mode;
mod resume;
pub(crate) mod usage;
pub(super) mod view;
pub(super) mod wait;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(create::create, list::list))
        .routes(routes!(read::read, delete::delete))
        .routes(routes!(resume::resume))
        .routes(routes!(cancel::cancel))
        .routes(routes!(pause::pause))
        .routes(routes!(fork::fork))
        .routes(routes!(fork::retry))
        .routes(routes!(events::events))
        .routes(routes!(messages::list, messages::add))
        .routes(routes!(feedback::list, feedback::add))
        .routes(routes!(feedback::delete))
        .routes(routes!(read::export))
        .routes(routes!(read::blob))
}
