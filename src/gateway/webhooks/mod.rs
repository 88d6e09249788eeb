//! `/v1/webhook-endpoints`: endpoints with their secrets, and the deliveries to them.

mod deliveries;
mod endpoints;
mod message;
mod run_webhook;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::message::{MessageView, described};
pub(crate) use self::run_webhook::NewRunWebhook;
use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(endpoints::create, endpoints::list))
        .routes(routes!(endpoints::read, endpoints::change, endpoints::remove))
        .routes(routes!(deliveries::test))
        .routes(routes!(endpoints::rotate))
        .routes(routes!(deliveries::deliveries))
        .routes(routes!(deliveries::redeliver))
}
