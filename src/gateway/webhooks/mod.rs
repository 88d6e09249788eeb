//! `/v1/webhook-endpoints`, and webhook delivery: [Standard Webhooks](https://www.standardwebhooks.com) about runs that
//! are pending, runs that ended, and calls that require approval.
//!
//! Messages are thin: they refer to a run, and never contain its content. They are derived from the journal ([`news`]),
//! so that no event is lost in a crash. The id of a message is derived from its event, so that no event has two ids.
//! The [`Dispatcher`] creates and sends deliveries; handlers only read and write rows.
//!
//! Not done here: guaranteeing an order, following redirects, trusting addresses ([`egress`]).

mod change;
mod client;
mod create;
mod deliveries;
mod derived_id;
mod dispatcher;
mod egress;
mod endpoint;
mod endpoint_queue;
mod list;
mod notifications;
mod redeliver;
mod rotate;
mod schedule;
mod signature;
mod test;
mod view;
mod wake_signal;
pub(super) mod webhook_config;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use dispatcher::Dispatcher;
pub use egress::WebhookEgress;
pub use wake_signal::WebhookWakeSignal;
pub use webhook_config::{ConfiguredWebhook, WebhookConfig};

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
