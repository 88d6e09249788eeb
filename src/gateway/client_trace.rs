//! Trace context of the client (W3C `traceparent` and `tracestate`).

use axum::http::HeaderMap;
use toolgate_core::trace::Trace;

/// The trace that the client wants continued.
pub(super) fn client_trace(headers: &HeaderMap) -> Option<Trace> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mut trace = Trace::from_traceparent(text("traceparent")?)?;
    if let Some(state) = text("tracestate") {
        trace.take_state(state);
    }
    Some(trace)
}
