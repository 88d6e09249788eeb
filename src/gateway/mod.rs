//! The HTTP gateway: the same runs, for applications in any language.
//!
//! [`router`] is a router over a runner and nests in anybody's axum application; [`Gateway`] has the settings, keys and
//! surroundings that a program of its own wants. Runs are driven by the runner and not by connections: a client that closes
//! its connection changes nothing, and what its request has begun to change is completed (`gateway/completion.rs`). Handlers never hold the runner; they are handed one that knows only what belongs to the tenant
//! of whoever asks (`gateway/tenant.rs`), so that no query can forget whose things it is about.
//!
//! Not done here: deciding what a run does (`core::run`), opening adapters (`app`), keeping anything in memory that a
//! restart would miss.

mod access;
mod agents;
mod answer;
mod approvals;
mod body;
mod builder;
mod completion;
mod contract;
mod grants;
mod health;
mod held;
mod idempotency;
mod models;
mod named;
mod page;
mod problem;
mod redact;
mod rest;
mod revoked;
mod runs;
mod serve;
mod servers;
mod state;
mod surroundings;
mod tag;
mod tenant;
mod tools;
mod webhooks;

pub use access::{
    Caller, Claims, Door, KeyDoor, Limits, NewKey, OidcDoor, OidcError, OidcSettings, Origins, Rate, Scope, Scopes,
    mint,
};
pub use builder::{Builder, GatewaySettings};
pub use contract::description;
pub use named::check as check_name;
pub use problem::{FieldProblem, Problem};
pub use rest::Rest;
pub use runs::MediaHosts;
pub use serve::{ServeSettings, serve};
pub use state::Gateway;
pub use surroundings::{Alone, ModelCard, ServerFailure, ServerHealth, ServerLatency, ServerState, Surroundings};
pub use webhooks::{ConfiguredWebhook, Dispatcher, Outbound, Wake, WebhookEgress};

use crate::runner::AgentRunner;

/// A router over a runner, to be nested into an application that lets people in by itself: it puts a [`Caller`] into the
/// extensions of each request. A request without one is the application's own, and may do everything for the default tenant.
pub fn router(runner: AgentRunner) -> axum::Router {
    Gateway::builder(runner).anonymous(Caller::local()).build().router()
}
