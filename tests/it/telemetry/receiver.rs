//! OTLP receiver on its own thread: HTTP and gRPC on one address, with simulated failures.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::tls::Locked;

/// A receiver that runs until it is dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    days: Days,
    runtime: Option<Runtime>,
}

/// The state of a receiver, and the requests it accepted.
#[derive(Clone)]
struct Days {
    up_from: Instant,
    open: watch::Sender<bool>,
    rejects: Option<(u8, &'static str)>,
    takes: Duration,
    taken: Arc<Mutex<Vec<Request>>>,
    /// The requests in progress, and the most that were.
    at_once: Arc<Mutex<(usize, usize)>>,
}

/// An accepted request.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) content_type: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Receiver {
    /// A receiver that accepts every request.
    pub(crate) fn start() -> Self {
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), Duration::ZERO, true)
    }

    /// A receiver that first reports for that time that it is unavailable.
    pub(crate) fn down_for(time: Duration) -> Self {
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), time, true)
    }

    /// A receiver that takes that time for each request.
    pub(crate) fn slow(takes: Duration) -> Self {
        let days = Days { takes, ..Days::new(Duration::ZERO, true) };
        Self::serve(SocketAddr::from(([127, 0, 0, 1], 0)), days, None)
    }

    /// A receiver that does not respond before it is opened.
    pub(crate) fn shut() -> Self {
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), Duration::ZERO, false)
    }

    /// A receiver on this address.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self::listen(address, Duration::ZERO, true)
    }

    /// A receiver that rejects that many spans of each request, with this reason.
    pub(crate) fn rejecting(spans: u8, why: &'static str) -> Self {
        let rejects = Some((spans, why));
        Self::serve(SocketAddr::from(([127, 0, 0, 1], 0)), Days { rejects, ..Days::new(Duration::ZERO, true) }, None)
    }

    /// A receiver behind TLS.
    pub(crate) fn behind(locked: fn(tokio::net::TcpListener) -> Locked) -> Self {
        Self::serve(SocketAddr::from(([127, 0, 0, 1], 0)), Days::new(Duration::ZERO, true), Some(locked))
    }

    fn listen(address: SocketAddr, down: Duration, open: bool) -> Self {
        Self::serve(address, Days::new(down, open), None)
    }

    fn serve(address: SocketAddr, days: Days, locked: Option<fn(tokio::net::TcpListener) -> Locked>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let routes = Router::new()
            .route("/v1/traces", post(over_http))
            .route("/v1/metrics", post(over_http))
            .route("/v1/logs", post(over_http))
            .route("/opentelemetry.proto.collector.trace.v1.TraceService/Export", post(over_grpc))
            .route("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", post(over_grpc))
            .route("/opentelemetry.proto.collector.logs.v1.LogsService/Export", post(over_grpc))
            .layer(axum::extract::DefaultBodyLimit::max(4 * 1024 * 1024))
            .with_state(days.clone());
        let listener = std::net::TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            match locked {
                None => axum::serve(listener, routes).await,
                Some(locked) => axum::serve(locked(listener), routes).await,
            }
        });
        let scheme = if locked.is_some() { "https" } else { "http" };
        Self { address, scheme, days, runtime: Some(runtime) }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Responds from now on.
    pub(crate) fn open(&self) {
        self.days.open.send_replace(true);
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.days.taken.lock().unwrap().clone()
    }

    /// The most requests that were in progress at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.days.at_once.lock().unwrap().1
    }

    /// The number of occurrences of a text in the accepted requests.
    pub(crate) fn occurrences(&self, text: &str) -> usize {
        self.requests().iter().map(|request| occurrences(&request.body, text.as_bytes())).sum()
    }

    /// The number of spans: each contains its kind once.
    pub(crate) fn spans(&self) -> usize {
        self.occurrences("openinference.span.kind")
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

impl Days {
    fn new(down: Duration, open: bool) -> Self {
        let open = watch::Sender::new(open);
        let (taken, at_once) = (Arc::default(), Arc::default());
        Self { up_from: Instant::now() + down, open, rejects: None, takes: Duration::ZERO, taken, at_once }
    }

    /// The response body in the format of the request. An empty message means success.
    fn thanks(&self, content_type: &[u8]) -> Vec<u8> {
        let Some((spans, why)) = self.rejects else { return Vec::new() };
        if content_type.ends_with(b"json") {
            let partial = serde_json::json!({"rejectedSpans": spans.to_string(), "errorMessage": why});
            return serde_json::json!({ "partialSuccess": partial }).to_string().into_bytes();
        }
        let partial = [&[0x08, spans, 0x12, why.len() as u8], why.as_bytes()].concat();
        [&[0x0a, partial.len() as u8], partial.as_slice()].concat()
    }

    /// Accepts a request once the receiver is open; returns whether it is available.
    async fn take(&self, headers: HeaderMap, body: Bytes) -> bool {
        self.open.subscribe().wait_for(|open| *open).await.unwrap();
        {
            let (now, most) = &mut *self.at_once.lock().unwrap();
            *now += 1;
            *most = (*most).max(*now);
        }
        tokio::time::sleep(self.takes).await;
        self.at_once.lock().unwrap().0 -= 1;
        let up = Instant::now() >= self.up_from;
        if up {
            let content_type = headers["content-type"].to_str().unwrap().to_owned();
            self.taken.lock().unwrap().push(Request { content_type, headers, body });
        }
        up
    }
}

async fn over_http(State(days): State<Days>, headers: HeaderMap, body: Bytes) -> Response {
    let content_type = headers["content-type"].clone();
    let thanks = days.thanks(content_type.as_bytes());
    match days.take(headers, body).await {
        true => ([("content-type", content_type)], thanks).into_response(),
        false => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// The status may be sent before the message.
async fn over_grpc(State(days): State<Days>, headers: HeaderMap, body: Bytes) -> Response {
    let thanks = days.thanks(b"application/grpc");
    let (status, message) = match days.take(headers, body).await {
        true => ("0", [&[0, 0, 0, 0, thanks.len() as u8], thanks.as_slice()].concat()),
        false => ("14", Vec::new()),
    };
    ([("content-type", "application/grpc"), ("grpc-status", status)], message).into_response()
}

fn occurrences(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).filter(|window| window[0] == text[0] && *window == text).count()
}
