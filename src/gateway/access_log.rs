//! Access log and request metrics: one log line and one measurement per request. They contain the route, never its
//! parameters or the body; and for a request that was refused, the reason.

use std::time::Instant;

use axum::Extension;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use toolgate_core::error::ErrorCode;
use toolgate_ports::AnsweredRequest;
use toolgate_service::Caller;
use tracing::Level;

use crate::client_trace::client_trace;
use crate::guarded_body::holding;
use crate::negotiation::is_stream;
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::state::Gateway;

/// The status of a request whose client disconnected before the response. It is never sent.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// The route label of a request without a route: its path could be any text.
const NO_ROUTE: &str = "_other";

/// Logs a request when it is answered.
pub(super) async fn access_log(
    State(gateway): State<Gateway>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    let entry = Entry {
        began: Instant::now(),
        method: method(request.method()),
        route: request.extensions().get::<MatchedPath>().cloned(),
        trace_id: client_trace(request.headers(), gateway.settings().propagation)
            .filter(|trace| trace.parent.is_some())
            .map(|trace| trace.id.to_string()),
        id,
        gateway: gateway.clone(),
        is_logged: false,
    };
    let response = next.run(request).await;
    entry.answered(&response);
    if is_stream(response.headers()) {
        return holding(response, gateway.request_metrics().open_stream());
    }
    response
}

/// The log entry of a request. A request that is dropped before its response is logged as well: its client has
/// disconnected.
struct Entry {
    gateway: Gateway,
    id: RequestId,
    began: Instant,
    method: &'static str,
    route: Option<MatchedPath>,
    trace_id: Option<String>,
    is_logged: bool,
}

impl Entry {
    fn answered(mut self, response: &Response) {
        self.is_logged = true;
        let caller = response.extensions().get::<Caller>().map(|caller| &*caller.name);
        self.record(response.status().as_u16(), caller, response.extensions().get::<Problem>());
    }

    fn record(&self, status: u16, caller: Option<&str>, problem: Option<&Problem>) {
        let duration = self.began.elapsed();
        let (method, route) = (self.method, self.route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str));
        if let Some(meter) = &self.gateway.request_metrics().meter {
            meter.answered(&AnsweredRequest { method, route, status, duration });
        }
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let (request, trace_id) = (&self.id.0, self.trace_id.as_deref());
        let (code, detail, cause) = (
            problem.map(|problem| problem.code().as_str()),
            problem.map(Problem::detail),
            problem.and_then(Problem::cause),
        );
        macro_rules! log {
            ($level:expr) => {
                tracing::event!(
                    target: "toolgate::http", $level,
                    method, route, status, duration_ms, request, trace_id, caller, code, detail, cause, "answered"
                )
            };
        }
        match level(route, status, problem) {
            Level::ERROR => log!(Level::ERROR),
            Level::DEBUG => log!(Level::DEBUG),
            _ => log!(Level::INFO),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.is_logged {
            self.record(CLIENT_CLOSED_REQUEST, None, None);
        }
    }
}

/// Probes are frequent, so they are logged at a low level. Refusing new work is intended; other errors of the server
/// need attention.
fn level(route: &str, status: u16, problem: Option<&Problem>) -> Level {
    let is_on_purpose = problem.is_some_and(|problem| problem.code() == ErrorCode::Unavailable);
    match status {
        _ if route == "/healthz" || route == "/readyz" => Level::DEBUG,
        500.. if !is_on_purpose => Level::ERROR,
        _ => Level::INFO,
    }
}

/// An unknown method would be a label that the client chooses.
fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or(NO_ROUTE)
}
