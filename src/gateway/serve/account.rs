//! One line in the log and one measurement for each request: what was asked by its route, and never with its parameters
//! or its body.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use crate::gateway::access::Caller;
use crate::gateway::answer::{is_stream, traced};
use crate::gateway::state::Gateway;
use crate::telemetry::metrics::{HttpAnswer, HttpMeter};

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

/// Tells of a request when it is answered.
pub(in crate::gateway) async fn account(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let trace_id = traced(request.headers()).map(|trace| trace.id.to_string());
    let response = next.run(request).await;
    let (took, status) = (began.elapsed(), response.status().as_u16());
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let request = response.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let caller = response.extensions().get::<Caller>().map(|caller| &*caller.name);
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    // Those who look after the process ask all the time.
    if route == "/healthz" || route == "/readyz" {
        tracing::debug!(target: "toolgate::http", method, route, status, duration_ms, request, "answered");
    } else {
        tracing::info!(target: "toolgate::http", method, route, status, duration_ms, request, trace_id, caller, "answered");
    }
    let accounts = gateway.accounts();
    if let Some(meter) = &accounts.meter {
        meter.answered(&HttpAnswer { method, route, status, took });
    }
    if is_stream(response.headers()) {
        let open = Open::one_more(accounts.streams.clone());
        return response.map(|body| Body::new(Counted { body, _open: open }));
    }
    response
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

/// A stream that is counted until its reader is gone.
struct Counted {
    body: Body,
    _open: Open,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
