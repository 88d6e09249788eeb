//! The scope that a route requires, checked before its body is read: a caller without it is refused at once, at no
//! further cost. Handlers check again, and those whose answer depends on the body require more.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use super::{Caller, Scope};
use crate::gateway::problem::Problem;

pub(super) async fn allowed(caller: Caller, request: Request, next: Next) -> Result<Response, Problem> {
    let route = request.extensions().get::<MatchedPath>();
    if let Some(scope) = route.and_then(|route| required(request.method(), route.as_str())) {
        caller.require(scope)?;
    }
    Ok(next.run(request).await)
}

/// The scope of a route, which may be nested in another application's path.
fn required(method: &Method, route: &str) -> Option<Scope> {
    let (_, route) = route.rsplit_once("/v1/")?;
    let (collection, of_one) = route.split_once('/').unwrap_or((route, ""));
    let reads = method.is_safe();
    Some(match (collection, reads) {
        ("runs", true) => Scope::RunsRead,
        ("runs", false) => Scope::RunsWrite,
        ("approvals" | "approval-grants", true) => Scope::ApprovalsRead,
        ("approvals" | "approval-grants", false) => Scope::ApprovalsDecide,
        ("tools", false) if of_one.ends_with("/call") => Scope::ToolsCall,
        ("agents" | "models" | "tools" | "servers", true) => Scope::ToolsRead,
        ("keys", _) | ("servers", false) => Scope::Admin,
        ("webhook-endpoints", _) => Scope::Webhooks,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::description;

    #[test]
    fn every_route_requires_a_scope_even_when_nested() {
        let description = serde_json::to_value(description()).unwrap();
        for (path, item) in description["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                let Ok(method) = method.to_uppercase().parse::<Method>() else { continue };
                let scope = required(&method, path);
                assert!(scope.is_some(), "{method} {path}");
                assert_eq!(required(&method, &format!("/api/v1/agents{path}")), scope, "{method} {path}");
            }
        }
    }
}
