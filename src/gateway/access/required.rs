//! The scope that a route requires, checked before its body is read: a caller without it is refused at once, at no
//! further cost. Handlers check again, and those whose answer depends on the body require more.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use toolgate_service::Scope;

use super::authenticate::Authenticated;
use crate::problem::Problem;

/// Refuses a caller without the scope of the route.
pub(crate) async fn require_scope(
    Authenticated(caller): Authenticated,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let route = request.extensions().get::<MatchedPath>();
    if let Some(scope) = route.and_then(|route| required(request.method(), route.as_str())) {
        caller.require(scope)?;
    }
    Ok(next.run(request).await)
}

/// The scope of a route, which may be nested in another application's path.
pub(crate) fn required(method: &Method, route: &str) -> Option<Scope> {
    let (_, route) = route.rsplit_once("/v1/")?;
    let (collection, of_one) = route.split_once('/').unwrap_or((route, ""));
    let reads = method.is_safe();
    Some(match (collection, reads) {
        ("runs" | "sessions", true) => Scope::RunsRead,
        ("runs" | "sessions", false) => Scope::RunsWrite,
        ("approvals" | "approval-grants", true) => Scope::ApprovalsRead,
        ("approvals" | "approval-grants", false) => Scope::ApprovalsDecide,
        ("tools", false) if of_one.ends_with("/call") => Scope::ToolsCall,
        ("agents" | "models" | "tools" | "servers", true) => Scope::ToolsRead,
        ("keys", _) | ("servers", false) => Scope::Admin,
        ("webhook-endpoints", _) => Scope::Webhooks,
        _ => return None,
    })
}
