//! Endpoints that start runs: a repeat of such a request finds its outcome in the run.

use axum::extract::MatchedPath;
use axum::http::request::Parts;
use axum::response::Response;
use futures::future::BoxFuture;
use toolgate_core::id::RunId;
use toolgate_service::Caller;

use crate::problem::Problem;
use crate::runs::read::current;
use crate::state::Gateway;

/// An endpoint that starts a run with the id of its [`super::PlannedRunId`].
pub(super) struct RunStart {
    route: &'static str,
    /// The response to a repeat: the run as it is now.
    pub(super) respond: Respond,
}

type Respond = for<'a> fn(&'a Gateway, &'a Caller, &'a Parts, &'a RunId) -> BoxFuture<'a, Result<Response, Problem>>;

/// All of them. A surface that starts runs adds its endpoint, with a response in its own form.
const RUN_STARTS: [RunStart; 5] = [
    started_at("/v1/runs"),
    started_at("/v1/sessions/{session}/runs"),
    started_at("/v1/sessions/{session}/compact"),
    started_at("/v1/runs/{run}/fork"),
    started_at("/v1/runs/{run}/retry"),
];

const fn started_at(route: &'static str) -> RunStart {
    RunStart { route, respond: |gateway, caller, parts, run| Box::pin(current(gateway, caller, parts, run)) }
}

/// The endpoint of a request, if it starts runs. The route may be nested in another application's path.
pub(super) fn run_start(parts: &Parts) -> Option<&'static RunStart> {
    let route = parts.extensions.get::<MatchedPath>()?.as_str();
    RUN_STARTS.iter().find(|start| route.ends_with(start.route))
}
