//! Trace context of the client (W3C `traceparent`, `tracestate` and `baggage`), and of its response (`traceresponse`).

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use toolgate_core::trace::{Baggage, Propagation, SpanContext, Trace, TraceId};
use uuid::Uuid;

use crate::state::Gateway;

/// The header with the root span of the execution that a request began (W3C Trace Context Level 2, draft).
pub(crate) const TRACE_RESPONSE: HeaderName = HeaderName::from_static("traceresponse");

/// The trace that the client wants continued, as a parameter of handlers.
pub(super) struct ClientTrace(pub(super) Option<Trace>);

impl FromRequestParts<Gateway> for ClientTrace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Infallible> {
        Ok(Self(client_trace(&parts.headers, gateway.settings().propagation)))
    }
}

/// The trace that the client wants continued, in the parts that the propagators accept. Baggage without a trace begins one
/// that carries it. Malformed parts are ignored, as by every implementation of the W3C's recommendations.
pub(super) fn client_trace(headers: &HeaderMap, propagation: Propagation) -> Option<Trace> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let parent = text("traceparent").filter(|_| propagation.trace_context);
    let mut trace = parent.and_then(Trace::from_traceparent);
    if let (Some(trace), Some(state)) = (&mut trace, text("tracestate")) {
        trace.take_state(state);
    }
    let lists: Vec<&str> = headers.get_all("baggage").iter().filter_map(|value| value.to_str().ok()).collect();
    match Baggage::read(&lists.join(",")).kept.filter(|_| propagation.baggage) {
        None => trace,
        Some(baggage) => {
            // The sampler decides about it.
            let new = || Trace::new(TraceId(Uuid::now_v7().into_bytes()), false);
            Some(Trace { baggage: Some(baggage), ..trace.unwrap_or_else(new) })
        }
    }
}

/// The root span of an execution, for the client that began it.
pub(crate) fn trace_response(execution: &SpanContext) -> Option<HeaderValue> {
    HeaderValue::from_str(&execution.traceparent()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(headers: &[(&'static str, &'static str)], propagation: Propagation) -> Option<Trace> {
        let named = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        client_trace(&headers.iter().map(named).collect(), propagation)
    }

    #[test]
    fn only_parts_that_the_propagators_accept_are_read() {
        let all = [("traceparent", PARENT), ("tracestate", "a=b"), ("baggage", "user=1"), ("baggage", "tier=gold")];
        let whole = read(&all, Propagation::ALL).unwrap();
        assert_eq!((whole.state.as_deref(), whole.baggage.as_deref()), (Some("a=b"), Some("user=1,tier=gold")));
        assert_eq!(read(&all, Propagation::TRACE_CONTEXT).unwrap().baggage, None);
        let baggage = read(&all, Propagation { trace_context: false, baggage: true }).unwrap();
        assert_eq!((baggage.parent, baggage.baggage.as_deref()), (None, Some("user=1,tier=gold")));
        assert_ne!(baggage.id, whole.id);
        assert_eq!(read(&all, Propagation::NOTHING), None);
    }

    #[test]
    fn malformed_parts_are_ignored() {
        assert_eq!(read(&[("traceparent", "00-1"), ("tracestate", "a=b")], Propagation::ALL), None);
        let trace = read(&[("traceparent", PARENT), ("tracestate", "A B"), ("baggage", "=,x")], Propagation::ALL);
        let trace = trace.unwrap();
        assert_eq!((trace.state, trace.baggage), (None, None));
    }
}
