//! Router: all routes of the gateway, and the middleware around them in the order in which a request passes it.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::Response;
use toolgate_core::error::ErrorCode;
use toolgate_runner::AgentRunner;
use toolgate_service::Caller;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::problem::Problem;
use super::state::Gateway;
use super::{
    access_log, agents, approvals, completion, events, files, grants, health, idempotency, keys, me, models, openapi,
    panic, problem_body, request_id, runs, servers, sessions, stream_tickets, tools, webhooks,
};
use crate::access::{self, Origins, require_scope};

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
        let authenticated_layers = ServiceBuilder::new()
            // Detaches requests that may change something from their connection, and handles them to their end; before
            // every layer that waits, so that a whole request is handled although its client has gone.
            .layer(from_fn_with_state(gateway(), completion::complete))
            // Replaces a stream ticket with the credentials of its creator.
            .layer(from_fn_with_state(gateway(), access::redeem_ticket))
            // Authenticates the caller: every later layer counts or checks it. Ends streams whose credentials expire.
            .layer(from_fn_with_state(gateway(), access::authenticate))
            // Limits the caller's rate and concurrency, so that a refused request costs no more than its head.
            .layer(from_fn_with_state(gateway(), access::limit_caller))
            // Requires the scope of the route before its body is read.
            .layer(from_fn(require_scope))
            // Receives the whole body in time, so that a slow client holds no handler; a few uploads of files at once.
            .layer(from_fn_with_state(gateway(), access::receive_body))
            // Handles a request with an idempotency key once; inside completion, so that its outcome is recorded.
            .layer(from_fn_with_state(gateway(), idempotency::handle_once));
        let outer_layers = ServiceBuilder::new()
            // Assigns the request id; outermost, because the log and problems name it.
            .layer(from_fn(request_id::assign))
            // Logs and measures the request, including refusals of all layers below.
            .layer(from_fn_with_state(gateway(), access_log::access_log))
            // Keeps responses out of caches: they are for their caller, and a browser would keep some errors for good.
            .layer(map_response(not_cached))
            // Writes the problem of a refused request as the body of the response.
            .layer(from_fn_with_state(gateway(), problem_body::write_problem))
            // Refuses pages of other origins, with or without credentials.
            .layer(from_fn_with_state(gateway(), access::check_origin))
            // Answers preflight requests, and adds the CORS headers of allowed origins.
            .option_layer(self.access().origins.as_ref().map(Origins::cors))
            // Turns a panic of a handler into a problem of its own request.
            .layer(CatchPanicLayer::custom(panic::panic_response))
            // Sets the limit at which extractors of axum stop to read a body. `receive_body` reads through one, and
            // refuses a larger `Content-Length` before it reads; without this, the limit would be axum's 2 MB.
            .layer(DefaultBodyLimit::max(self.settings().body_bytes));
        // The layers cover the routes that are already there; those merged after them are public.
        routes
            .layer(authenticated_layers)
            // Public: clients read the description, and problems link to its pages, before they have credentials.
            .merge(openapi::routes(&openapi::complete(description)))
            // Public: a process supervisor has no credentials.
            .merge(health::routes())
            .fallback(no_such_path)
            .method_not_allowed_fallback(no_such_method)
            .layer(outer_layers)
            .with_state(gateway())
    }
}

async fn not_cached(mut response: Response) -> Response {
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn no_such_path() -> Problem {
    Problem::new(ErrorCode::NotFound, "there is no endpoint at this path; `/openapi.json` describes them all")
}

async fn no_such_method() -> Problem {
    Problem::new(ErrorCode::MethodNotAllowed, "this path does not support this method; `Allow` lists those it supports")
}

/// The OpenAPI document of the API.
pub fn description() -> OpenApi {
    openapi::complete(api().into_openapi())
}

/// The described routes of every noun.
fn api() -> OpenApiRouter<Gateway> {
    OpenApiRouter::with_openapi(openapi::head())
        .merge(runs::routes())
        .merge(events::routes())
        .merge(sessions::routes())
        .merge(files::routes())
        .merge(approvals::routes())
        .merge(grants::routes())
        .merge(tools::routes())
        .merge(servers::routes())
        .merge(agents::routes())
        .merge(models::routes())
        .merge(webhooks::routes())
        .merge(keys::routes())
        .merge(stream_tickets::routes())
        .merge(me::routes())
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;
    use crate::access::required;

    #[test]
    fn every_route_requires_a_scope_even_when_nested() {
        let description = serde_json::to_value(description()).unwrap();
        for (path, item) in description["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                let Ok(method) = method.to_uppercase().parse::<Method>() else { continue };
                let scope = required(&method, path);
                // A ticket needs the scope of its stream, which its body names.
                let has_scope = !["/v1/me", "/v1/stream-tickets"].contains(&path.as_str());
                assert_eq!(scope.is_some(), has_scope, "{method} {path}");
                assert_eq!(required(&method, &format!("/api/v1/agents{path}")), scope, "{method} {path}");
            }
        }
    }
}
