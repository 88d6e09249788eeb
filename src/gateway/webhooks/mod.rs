//! `/v1/webhook-endpoints`, and what is sent there: [Standard Webhooks](https://www.standardwebhooks.com) about runs that
//! wait, runs that are over, and calls that somebody has to decide about.
//!
//! Messages are thin: they say what to look at, never what was said. What is to be told follows from the journal
//! ([`news`]), so nothing that a crash interrupts is lost, and each message has an id that follows from what it tells, so
//! nothing is told under two names. The [`Dispatcher`] makes deliveries and sends them; handlers only read and write rows.
//!
//! Not done here: promising an order, following redirects, believing where an address leads ([`egress`]).

mod change;
mod create;
mod deliveries;
mod dispatcher;
mod egress;
mod endpoint;
mod lane;
mod list;
mod news;
mod outbound;
mod post;
mod redeliver;
mod rotate;
mod schedule;
mod signature;
mod test;
mod view;
mod wake;

use sha2::{Digest as _, Sha256};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use dispatcher::Dispatcher;
pub use egress::WebhookEgress;
pub use outbound::{ConfiguredWebhook, Outbound};
pub use wake::Wake;

use super::state::Gateway;
use crate::core::json::hex;

/// An id that follows from what it names: the same wherever it is asked for.
fn following_from(named: &str) -> String {
    hex(&Sha256::digest(named)).chars().take(32).collect()
}

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(create::create, list::list))
        .routes(routes!(endpoint::read, change::change, endpoint::remove))
        .routes(routes!(test::test))
        .routes(routes!(rotate::rotate))
        .routes(routes!(deliveries::deliveries))
        .routes(routes!(redeliver::redeliver))
}
