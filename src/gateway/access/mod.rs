//! Who is let in, and what they may do.
//!
//! Every request has a [`Caller`] before a handler sees it: from a [`Door`] that knows the credentials it brings, from the
//! application that the router is nested in, or the anonymous one where the operator wants that. Why credentials do not
//! hold is nobody's business but the log's. What a caller may ask for at once and in a minute is counted here too, and
//! what a browser may ask for in somebody's name.

mod arrival;
mod caller;
mod credentials;
pub(super) mod keys;
mod limits;
mod oidc;
mod origins;
mod required;
mod standing;

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
pub use keys::{KeyDoor, NewKey, mint};
pub(super) use limits::{Limiter, ReadPermit, StreamPermit};
pub use limits::{Limits, Rate};
pub use oidc::{Claims, OidcDoor, OidcError, OidcSettings};
pub use origins::Origins;

use super::answer::is_stream;
use super::completion;
use super::problem::Problem;
use super::state::Gateway;
use credentials::unauthorized;

/// A kind of credentials.
#[async_trait]
pub trait Door: Send + Sync {
    /// Who shows these credentials. `None` if it is not for this door to say: they are of another kind, or there are none.
    ///
    /// # Errors
    /// A problem if they are of this kind and do not hold.
    async fn opened_by(&self, request: &Parts) -> Result<Option<Caller>, Problem>;
}

/// Every way in, and what is counted at it.
pub(super) struct Access {
    pub(super) doors: Vec<Arc<dyn Door>>,
    /// The door of keys, if there is one: keys are looked after through it.
    pub(super) keys: Option<Arc<KeyDoor>>,
    /// Who somebody is that shows nothing.
    pub(super) anonymous: Option<Caller>,
    /// What browsers may do. `None`: whoever nests the router looks after that.
    pub(super) origins: Option<Origins>,
    pub(super) limiter: Limiter,
}

impl Access {
    async fn caller(&self, request: &Parts) -> Result<Caller, Problem> {
        if let Some(caller) = request.extensions.get::<Caller>() {
            return Ok(caller.clone());
        }
        for door in &self.doors {
            if let Some(caller) = door.opened_by(request).await? {
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
        .layer(from_fn_with_state(gateway.clone(), arrival::arrived))
        .layer(from_fn(required::allowed))
        .layer(from_fn_with_state(gateway.clone(), limits::counted))
        .layer(from_fn_with_state(gateway.clone(), let_in))
}

/// What stands before everything, with a caller or without one.
pub(super) fn fenced(router: Router<Gateway>, gateway: &Gateway) -> Router<Gateway> {
    match &gateway.access().origins {
        Some(origins) => router.layer(origins.cors()).layer(from_fn_with_state(gateway.clone(), origins::checked)),
        None => router,
    }
}

/// Lets whoever asks in, or refuses them.
async fn let_in(State(gateway): State<Gateway>, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let access = gateway.access();
    let caller = access.caller(&parts).await.map_err(|problem| access.limiter.failed(address(&parts), problem))?;
    let shown = standing::copied(&parts);
    parts.extensions.insert(caller.clone());
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if is_stream(response.headers()) {
        response = standing::while_they_hold(gateway, shown, response);
    }
    // For whoever tells of the request.
    response.extensions_mut().insert(caller);
    Ok(response)
}

/// Where the request comes from, if the server says.
fn address(request: &Parts) -> Option<IpAddr> {
    request.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip())
}
