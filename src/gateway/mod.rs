//! HTTP gateway: the API for applications in any language.
//!
//! [`router`](router()) is a router over a runner and nests in any axum application; [`Gateway`] adds the settings, keys and
//! adapters that a server of its own needs. The runner drives the runs, not the connections: a client that disconnects
//! changes nothing, and the gateway completes what its request has begun (`gateway/completion.rs`). Handlers never hold
//! the runner itself; they receive one that is limited to the caller's tenant (`service/runs.rs`), so that no query can
//! forget the tenant.
//!
//! | files | contents |
//! |---|---|
//! | `router` | all routes, and the layers in the order in which a request passes them |
//! | `state`, `builder`, `settings`, `backends` | [`Gateway`] and its parts |
//! | `runs`, `events`, `sessions`, `files`, `approvals`, `grants`, `tools`, `servers`, `agents`, `models`, `webhooks`, `keys`, `stream_tickets`, `me` | the nouns of the API, with their handlers and views |
//! | `access` | authentication, scopes, limits, origins, body timeouts |
//! | `idempotency`, `completion` | requests that are handled once, and to their end |
//! | `problem`, `problem_body`, `panic`, `redact` | refusals |
//! | `request_id`, `access_log`, `request_metrics`, `client_trace` | request ids, the access log, metrics, the trace of the client |
//! | `parameters`, `body`, `negotiation`, `pagination`, `etag`, `precondition`, `guarded_body`, `download`, `revoked` | what handlers share |
//! | `openapi`, `health` | the public routes |
//! | `serve` | the HTTP server: connections, timeouts, event streams |
//!
//! Not done here: deciding what a run does (`core::run`), opening adapters (`app`), keeping state in memory that a
//! restart would lose.

mod access;
mod access_log;
mod agents;
mod approvals;
mod backends;
mod body;
mod builder;
mod client_trace;
mod closed_sets;
mod completion;
mod download;
mod etag;
mod events;
mod files;
mod grants;
mod guarded_body;
mod health;
mod idempotency;
mod keys;
mod me;
mod models;
mod negotiation;
mod openapi;
mod pagination;
mod panic;
mod parameters;
mod precondition;
mod problem;
mod problem_body;
mod redact;
mod request_id;
mod request_metrics;
mod revoked;
mod router;
mod runs;
mod serve;
mod servers;
mod sessions;
mod settings;
mod state;
mod stream_tickets;
mod tools;
mod webhooks;

pub use access::{
    ApiKeyAuthenticator, Authenticator, Claims, Limits, OidcAuthenticator, OidcError, OidcSettings, Origins, Rate,
};
pub use backends::{Backends, ModelCard, NoBackends, ServerFailure, ServerHealth, ServerLatency, ServerState};
pub use builder::Builder;
pub use problem::Problem;
pub use router::{description, router};
pub use serve::{ServeSettings, serve};
pub use settings::GatewaySettings;
pub use state::Gateway;

/// Objects of the API that the command line prints as well.
pub mod views {
    pub use crate::grants::GrantView;
    pub use crate::tools::ToolsView;
}
