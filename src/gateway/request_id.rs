//! Response finishing: adds the request id, and writes problems out.

use axum::Json;
use axum::extract::{OriginalUri, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use toolgate_core::error::ErrorCode;
use toolgate_core::trace::Trace;
use uuid::Uuid;

use super::problem::Problem;
use super::redact::without_keys;
use super::state::Gateway;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest request id that is accepted from a client.
const LONGEST_ID: usize = 128;

/// The id of a request; in its extensions while it is handled.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) String);

impl RequestId {
    /// The id that the client sent, if it can appear in a log, or else a new one.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let brought = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let is_fit = |id: &&str| {
            (1..=LONGEST_ID).contains(&id.len())
                && without_keys(id) == **id
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
        };
        Self(brought.filter(is_fit).map_or_else(|| format!("req_{}", Uuid::now_v7().simple()), str::to_owned))
    }
}

/// Adds the request id to a response, and writes its problem as the body. The problem stays in the extensions, for the
/// access log.
pub(super) async fn finish(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let id = request.extensions().get().cloned().unwrap_or_else(|| RequestId::of(request.headers()));
    let path = request
        .extensions()
        .get::<OriginalUri>()
        .map_or_else(|| request.uri().path().to_owned(), |uri| uri.path().to_owned());
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions().get::<Problem>() {
        let view = problem.view(&gateway.settings().public_url, path, id.0.clone());
        let (mut parts, _) = response.into_parts();
        let (_, body) = Json(view).into_response().into_parts();
        parts.headers.remove(CONTENT_LENGTH);
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response = Response::from_parts(parts, body);
    }
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Whether a response is an event stream.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|media_type| media_type.as_bytes().starts_with(b"text/event-stream"))
}

/// The trace that the client wants continued.
pub(super) fn traced(headers: &HeaderMap) -> Option<Trace> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mut trace = Trace::from_traceparent(text("traceparent")?)?;
    if let Some(state) = text("tracestate") {
        trace.take_state(state);
    }
    Some(trace)
}

pub(super) async fn no_such_path() -> Problem {
    Problem::new(ErrorCode::NotFound, "there is no endpoint at this path; `/openapi.json` describes them all")
}

pub(super) async fn no_such_method() -> Problem {
    Problem::new(ErrorCode::MethodNotAllowed, "this path does not support this method; `Allow` lists those it supports")
}
