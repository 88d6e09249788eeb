//! Authentication layer, and the caller as a parameter of handlers: every request behind it has one.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use toolgate_core::error::ErrorCode;
use toolgate_service::{Caller, Scope};

use super::revalidate_stream;
use crate::negotiation::is_stream;
use crate::problem::Problem;
use crate::state::Gateway;

/// Authenticates a request, or refuses it.
pub(crate) async fn authenticate(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
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
pub(super) fn address(request: &Parts) -> Option<IpAddr> {
    request.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip())
}

/// The caller of a request, for layers behind the authentication.
pub(crate) struct Authenticated(pub(crate) Caller);

/// The caller of a request, for handlers: it has the scope of the route.
#[derive(Clone)]
pub(crate) struct Authorized(pub(crate) Caller);

impl<S: Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get().cloned().map(Self);
        caller.ok_or_else(|| Problem::new(ErrorCode::Internal, "the request was not authenticated"))
    }
}

impl<S: Sync> FromRequestParts<S> for Authorized {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get().cloned();
        caller.ok_or_else(|| Problem::new(ErrorCode::Internal, "no scope is defined for this route"))
    }
}

/// Refuses a caller without the scope of the route. A route without one has no [`Authorized`] caller: no handler serves
/// it, except the one that shows a caller to itself.
pub(crate) async fn require_scope(
    Authenticated(caller): Authenticated,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let route = request.extensions().get::<MatchedPath>();
    if let Some(scope) = route.and_then(|route| required(request.method(), route.as_str())) {
        caller.require(scope)?;
        request.extensions_mut().insert(Authorized(caller));
    }
    Ok(next.run(request).await)
}

/// The scope of a route, which may be nested in another application's path.
pub(crate) fn required(method: &Method, route: &str) -> Option<Scope> {
    let (_, route) = route.rsplit_once("/v1/")?;
    let (collection, of_one) = route.split_once('/').unwrap_or((route, ""));
    let reads = method.is_safe();
    Some(match (collection, reads) {
        ("runs" | "sessions" | "events" | "files", true) => Scope::RunsRead,
        ("runs" | "sessions" | "files", false) => Scope::RunsWrite,
        ("approvals" | "approval-grants", true) => Scope::ApprovalsRead,
        ("approvals" | "approval-grants", false) => Scope::ApprovalsDecide,
        ("tools", false) if of_one.ends_with("/call") => Scope::ToolsCall,
        ("agents" | "models" | "tools" | "servers", true) => Scope::ToolsRead,
        ("keys", _) | ("servers", false) => Scope::Admin,
        ("webhook-endpoints", _) => Scope::Webhooks,
        _ => return None,
    })
}
