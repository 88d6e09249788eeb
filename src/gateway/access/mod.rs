//! Authentication and authorization of requests.
//!
//! Every request has a [`Caller`] before a handler runs: from a [`Authenticator`] that authenticates its credentials, from the
//! application that the router is nested in, or the anonymous caller if the operator allows one. Only the log says why
//! credentials are invalid. This module also enforces the rate and concurrency limits of a caller, and the rules for
//! requests from browsers.

mod body_timeout;
mod caller;
mod credentials;
pub(super) mod keys;
mod limits;
mod oidc;
mod origins;
mod required;
mod revalidate_stream;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;

pub use caller::{Caller, Scope, Scopes};
pub use keys::{ApiKeyAuthenticator, NewKey, mint};
pub(super) use limits::{Limiter, ReadPermit, StreamPermit};
pub use limits::{Limits, Rate};
pub use oidc::{Claims, OidcAuthenticator, OidcError, OidcSettings};
pub use origins::Origins;

use super::completion;
use super::problem::Problem;
use super::request_id::is_stream;
use super::state::Gateway;
use credentials::unauthorized;

/// An authenticator for one kind of credentials.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Authenticates a request. `None` if it has credentials of another kind, or none.
    ///
    /// # Errors
    /// A problem if the credentials are of this kind and are not valid.
    async fn authenticate(&self, request: &Parts) -> Result<Option<Caller>, Problem>;
}

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
    async fn caller(&self, request: &Parts) -> Result<Caller, Problem> {
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

/// The layers before every route that needs a caller, from the outside in: authentication, rate limits, the scope, the
/// time for the body, and completion (a request that arrived whole is handled to its end).
pub(super) fn guarded(router: Router<Gateway>, gateway: &Gateway) -> Router<Gateway> {
    router
        .layer(from_fn_with_state(gateway.clone(), completion::completed))
        .layer(from_fn_with_state(gateway.clone(), body_timeout::arrived))
        .layer(from_fn(required::allowed))
        .layer(from_fn_with_state(gateway.clone(), limits::counted))
        .layer(from_fn_with_state(gateway.clone(), let_in))
}

/// The layers before every route, with a caller or without one.
pub(super) fn fenced(router: Router<Gateway>, gateway: &Gateway) -> Router<Gateway> {
    match &gateway.access().origins {
        Some(origins) => router.layer(origins.cors()).layer(from_fn_with_state(gateway.clone(), origins::checked)),
        None => router,
    }
}

/// Authenticates a request, or refuses it.
async fn let_in(State(gateway): State<Gateway>, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let access = gateway.access();
    let caller = access.caller(&parts).await.map_err(|problem| access.limiter.failed(address(&parts), problem))?;
    let shown = revalidate_stream::copied(&parts);
    parts.extensions.insert(caller.clone());
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if is_stream(response.headers()) {
        response = revalidate_stream::while_they_hold(gateway, shown, response);
    }
    // For the access log.
    response.extensions_mut().insert(caller);
    Ok(response)
}

/// The client's address, if the server knows it.
fn address(request: &Parts) -> Option<IpAddr> {
    request.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip())
}
