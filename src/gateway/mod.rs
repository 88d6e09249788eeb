//! HTTP gateway: the API for applications in any language.
//!
//! [`router`] is a router over a runner and nests in any axum application; [`Gateway`] adds the settings, keys and
//! adapters that a server of its own needs. The runner drives the runs, not the connections: a client that disconnects
//! changes nothing, and the gateway completes what its request has begun (`gateway/completion.rs`). Handlers never hold
//! the runner itself; they receive one that is limited to the caller's tenant (`gateway/tenant.rs`), so that no query
//! can forget the tenant.
//!
//! Not done here: deciding what a run does (`core::run`), opening adapters (`app`), keeping state in memory that a
//! restart would lose.

mod access;
mod agents;
mod approvals;
mod backends;
mod body;
mod builder;
mod completion;
mod etag;
mod grants;
mod guarded_body;
mod health;
mod idempotency;
mod models;
mod name_rules;
mod openapi;
mod pagination;
mod problem;
mod redact;
mod request_id;
mod revoked;
mod runs;
mod serve;
mod servers;
mod state;
mod tenant;
mod tools;
mod webhooks;
mod worker;

pub use access::{
    ApiKeyAuthenticator, Authenticator, Caller, Claims, Limits, NewKey, OidcAuthenticator, OidcError, OidcSettings,
    Origins, Rate, Scope, Scopes, mint,
};
pub use backends::{Backends, ModelCard, NoBackends, ServerFailure, ServerHealth, ServerLatency, ServerState};
pub use builder::{Builder, GatewaySettings};
pub use name_rules::check as check_name;
pub use openapi::description;
pub use problem::{FieldProblem, Problem};
pub use runs::MediaHosts;
pub use serve::{ServeSettings, serve};
pub use state::Gateway;
pub use webhooks::{ConfiguredWebhook, Dispatcher, WebhookConfig, WebhookEgress, WebhookWakeSignal};
pub use worker::Worker;

use crate::runner::AgentRunner;

/// A router over a runner, to be nested into an application that authenticates its own callers: it puts a [`Caller`]
/// into the extensions of each request. A request without one belongs to the application itself, with every scope for
/// the default tenant.
pub fn router(runner: AgentRunner) -> axum::Router {
    Gateway::builder(runner).anonymous(Caller::local()).build().router()
}
