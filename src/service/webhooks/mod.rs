//! Webhook delivery: [Standard Webhooks](https://www.standardwebhooks.com) about runs that are pending, runs that ended,
//! and calls that require approval.
//!
//! Messages are thin: they refer to a run, and never contain its content. They are derived from the journal
//! ([`notifications`]), so that no event is lost in a crash. The id of a message is derived from its event, so that no
//! event has two ids. The [`Dispatcher`] creates and sends deliveries; surfaces only read and write rows, through
//! [`TenantWebhooks`].
//!
//! Not done here: guaranteeing an order, following redirects, trusting addresses ([`egress`]).

mod client;
mod derived_id;
mod dispatcher;
mod egress;
mod endpoint_queue;
mod endpoints;
mod notifications;
mod run_webhook;
mod schedule;
mod signature;
mod wake_signal;
mod webhook_config;

pub use dispatcher::Dispatcher;
pub use egress::WebhookEgress;
pub use endpoints::{EndpointChange, NewEndpoint, TenantWebhooks};
pub use run_webhook::RunWebhook;
pub use wake_signal::WebhookWakeSignal;
pub use webhook_config::{ConfiguredWebhook, WebhookConfig};
