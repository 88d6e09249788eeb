//! Authentication and authorization of requests.
//!
//! Every request has a [`Caller`] before a handler runs: from an [`Authenticator`] that authenticates its credentials, from the
//! application that the router is nested in, or the anonymous caller if the operator allows one. Only the log says why
//! credentials are invalid. This module also enforces the rate and concurrency limits of a caller, and the rules for
//! requests from browsers.

mod api_key_authenticator;
mod authenticate;
mod authenticator;
mod body_timeout;
mod cors;
mod limits;
mod oidc;
mod revalidate_stream;
mod stream_ticket;
mod tenant_keys;

use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

pub use api_key_authenticator::ApiKeyAuthenticator;
#[cfg(test)]
pub(super) use authenticate::required;
pub(super) use authenticate::{Authenticated, Authorized, authenticate, require_scope};
pub use authenticator::Authenticator;
pub(super) use body_timeout::receive_body;
pub use cors::Origins;
pub(super) use cors::check_origin;
pub(super) use limits::{Admitted, Limiter, StreamPermit, limit_caller};
pub use limits::{Limits, Rate};
pub use oidc::{Claims, OidcAuthenticator, OidcError, OidcSettings};
pub(super) use stream_ticket::redeem_ticket;
pub(super) use tenant_keys::TenantKeys;

use toolgate_service::Caller;

use super::problem::Problem;
use authenticator::unauthorized;

/// All authenticators, and the limits on callers.
pub(super) struct Access {
    pub(super) authenticators: Vec<Arc<dyn Authenticator>>,
    /// The authenticator for API keys, if the gateway has one; `/v1/keys` manages keys through it.
    pub(super) keys: Option<Arc<ApiKeyAuthenticator>>,
    /// The caller for requests without credentials.
    pub(super) anonymous: Option<Caller>,
    /// The rules for browsers. `None`: the application that nests the router sets them.
    pub(super) origins: Option<Origins>,
    pub(super) limiter: Limiter,
}

impl Access {
    /// The caller of a request, or the problem to refuse it with.
    pub(super) async fn caller(&self, request: &Parts) -> Result<Caller, Problem> {
        if let Some(caller) = request.extensions.get::<Caller>() {
            return Ok(caller.clone());
        }
        for authenticator in &self.authenticators {
            if let Some(caller) = authenticator.authenticate(request).await? {
                return Ok(caller);
            }
        }
        let shows_something = request.headers.contains_key(AUTHORIZATION);
        match &self.anonymous {
            Some(anonymous) if !shows_something => Ok(anonymous.clone()),
            _ => Err(unauthorized(shows_something)),
        }
    }
}
