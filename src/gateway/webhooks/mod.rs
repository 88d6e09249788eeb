//! `/v1/webhook-endpoints`: one file per endpoint.

mod change;
mod create;
mod deliveries;
mod endpoint;
mod list;
mod redeliver;
mod rotate;
mod test;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(create::create, list::list))
        .routes(routes!(endpoint::read, change::change, endpoint::remove))
        .routes(routes!(test::test))
        .routes(routes!(rotate::rotate))
        .routes(routes!(deliveries::deliveries))
        .routes(routes!(redeliver::redeliver))
}
