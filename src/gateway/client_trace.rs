//! Trace context of the client (W3C `traceparent` and `tracestate`).

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use toolgate_core::trace::Trace;

/// The trace that the client wants continued, as a parameter of handlers.
pub(super) struct ClientTrace(pub(super) Option<Trace>);

impl<S: Sync> FromRequestParts<S> for ClientTrace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(client_trace(&parts.headers)))
    }
}

/// The trace that the client wants continued.
pub(super) fn client_trace(headers: &HeaderMap) -> Option<Trace> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mut trace = Trace::from_traceparent(text("traceparent")?)?;
    if let Some(state) = text("tracestate") {
        trace.take_state(state);
    }
    Some(trace)
}
