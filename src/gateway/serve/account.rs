//! One line in the log and one measurement for each request: what was asked by its route, and never with its parameters
//! or its body; and of a request that was refused, why.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use tracing::Level;

use crate::core::error::ErrorCode;
use crate::gateway::access::Caller;
use crate::gateway::answer::{RequestId, is_stream, traced};
use crate::gateway::held::holding;
use crate::gateway::problem::Problem;
use crate::gateway::state::Gateway;
use crate::telemetry::metrics::{HttpAnswer, HttpMeter};

/// The status of a request whose client did not wait for its answer. Nobody is ever answered with it.
const HUNG_UP: u16 = 499;

/// Of a request that has no route nothing is known that could not be anything.
const NO_ROUTE: &str = "_other";

/// What is counted of requests.
#[derive(Default)]
pub(in crate::gateway) struct Accounts {
    /// Where durations are recorded, if anywhere.
    pub(in crate::gateway) meter: Option<HttpMeter>,
    streams: Arc<AtomicU64>,
}

impl Accounts {
    /// How many streams are open.
    pub(in crate::gateway) fn streams(&self) -> u64 {
        self.streams.load(Ordering::Relaxed)
    }
}

/// Names a request, and tells of it when it is answered.
pub(in crate::gateway) async fn account(State(gateway): State<Gateway>, mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    let entry = Entry {
        began: Instant::now(),
        method: method(request.method()),
        route: request.extensions().get::<MatchedPath>().cloned(),
        trace_id: traced(request.headers()).map(|trace| trace.id.to_string()),
        id,
        gateway: gateway.clone(),
        is_told: false,
    };
    let response = next.run(request).await;
    entry.answered(&response);
    if is_stream(response.headers()) {
        return holding(response, Open::one_more(gateway.accounts().streams.clone()));
    }
    response
}

/// What is told of a request. One that is dropped before it was answered is told of as well: its client is gone.
struct Entry {
    gateway: Gateway,
    id: RequestId,
    began: Instant,
    method: &'static str,
    route: Option<MatchedPath>,
    trace_id: Option<String>,
    is_told: bool,
}

impl Entry {
    fn answered(mut self, response: &Response) {
        self.is_told = true;
        let caller = response.extensions().get::<Caller>().map(|caller| &*caller.name);
        self.tell(response.status().as_u16(), caller, response.extensions().get::<Problem>());
    }

    fn tell(&self, status: u16, caller: Option<&str>, problem: Option<&Problem>) {
        let took = self.began.elapsed();
        let (method, route) = (self.method, self.route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str));
        if let Some(meter) = &self.gateway.accounts().meter {
            meter.answered(&HttpAnswer { method, route, status, took });
        }
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let (request, trace_id) = (&self.id.0, self.trace_id.as_deref());
        let (code, detail, cause) = (
            problem.map(|problem| problem.code().as_str()),
            problem.map(Problem::detail),
            problem.and_then(Problem::cause),
        );
        macro_rules! tell {
            ($level:expr) => {
                tracing::event!(
                    target: "toolgate::http", $level,
                    method, route, status, duration_ms, request, trace_id, caller, code, detail, cause, "answered"
                )
            };
        }
        match level(route, status, problem) {
            Level::ERROR => tell!(Level::ERROR),
            Level::DEBUG => tell!(Level::DEBUG),
            _ => tell!(Level::INFO),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.is_told {
            self.tell(HUNG_UP, None, None);
        }
    }
}

/// Those who look after the process ask all the time. That nothing new is taken is said on purpose; other faults of a server are
/// for somebody to look at.
fn level(route: &str, status: u16, problem: Option<&Problem>) -> Level {
    let is_on_purpose = problem.is_some_and(|problem| problem.code() == ErrorCode::Unavailable);
    match status {
        _ if route == "/healthz" || route == "/readyz" => Level::DEBUG,
        500.. if !is_on_purpose => Level::ERROR,
        _ => Level::INFO,
    }
}

/// A method that is none would be a label of somebody else's choice.
fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or(NO_ROUTE)
}

/// Counted while it lives.
struct Open(Arc<AtomicU64>);

impl Open {
    fn one_more(counter: Arc<AtomicU64>) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
