//! Router: all routes of the gateway, and the middleware around them in the order in which a request passes it.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use toolgate_runner::AgentRunner;
use toolgate_service::Caller;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::state::Gateway;
use super::{
    access_log, agents, approvals, completion, grants, health, idempotency, keys, models, openapi, panic, request_id,
    runs, servers, tools, webhooks,
};
use crate::access::{self, Origins, required};

/// A router over a runner, to be nested into an application that authenticates its own callers: it puts a [`Caller`]
/// into the extensions of each request. A request without one belongs to the application itself, with every scope for
/// the default tenant.
pub fn router(runner: AgentRunner) -> Router {
    Gateway::builder(runner).anonymous(Caller::local()).build().router()
}

impl Gateway {
    /// The router of the API under `/v1`, and of its description.
    pub fn router(&self) -> Router {
        let gateway = || self.clone();
        let (routes, description) = api().split_for_parts();
        // Around the routes that need a caller.
        let guards = ServiceBuilder::new()
            // Authenticates the caller: every later layer counts or checks it. Ends streams whose credentials expire.
            .layer(from_fn_with_state(gateway(), access::authenticate))
            // Limits the caller's rate and concurrency, so that a refused request costs no more than its head.
            .layer(from_fn_with_state(gateway(), access::limit_caller))
            // Requires the scope of the route before its body is read.
            .layer(from_fn(required::require_scope))
            // Receives the whole body in time, so that a slow client holds no handler.
            .layer(from_fn_with_state(gateway(), access::receive_body))
            // Detaches requests that may change something from their connection, and handles them to their end.
            .layer(from_fn_with_state(gateway(), completion::complete))
            // Handles a request with an idempotency key once; inside completion, so that its outcome is recorded.
            .layer(from_fn_with_state(gateway(), idempotency::handle_once));
        // Around every route.
        let frame = ServiceBuilder::new()
            // Assigns the request id, logs and measures; outermost, so that refusals of all other layers are logged.
            .layer(from_fn_with_state(gateway(), access_log::access_log))
            // Writes problems as the body of the response, with the request id.
            .layer(from_fn_with_state(gateway(), request_id::finish))
            // Refuses pages of other origins, with or without credentials.
            .layer(from_fn_with_state(gateway(), access::check_origin))
            // Answers preflight requests, and adds the CORS headers of allowed origins.
            .option_layer(self.access().origins.as_ref().map(Origins::cors))
            // Turns a panic of a handler into a problem of its own request.
            .layer(CatchPanicLayer::custom(panic::caught))
            // Limits the size of every body.
            .layer(DefaultBodyLimit::max(self.settings().body_bytes));
        routes
            .layer(guards)
            .merge(openapi::routes(&openapi::complete(description)))
            .merge(health::routes())
            .fallback(request_id::no_such_path)
            .method_not_allowed_fallback(request_id::no_such_method)
            .layer(frame)
            .with_state(gateway())
    }
}

/// The OpenAPI document of the API.
pub fn description() -> OpenApi {
    openapi::complete(api().into_openapi())
}

/// The described routes of every noun.
fn api() -> OpenApiRouter<Gateway> {
    OpenApiRouter::with_openapi(openapi::head())
        .merge(runs::routes())
        .merge(approvals::routes())
        .merge(grants::routes())
        .merge(tools::routes())
        .merge(servers::routes())
        .merge(agents::routes())
        .merge(models::routes())
        .merge(webhooks::routes())
        .merge(keys::routes())
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;
    use crate::access::required::required;

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
