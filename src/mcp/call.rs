//! One `tools/call`: what is sent along, and how long it may take.

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::{Map, Value};

use super::answer;
use super::connection::Connection;
use super::exchange::Limits;
use super::fault::Fault;
use crate::core::tool::{CallReply, Outcome};
use crate::core::trace::SpanContext;
use crate::ports::{McpCall, Progress};

/// Makes the call. Arguments are always sent, also when there are none: servers choke on their absence.
pub(super) async fn make(
    connection: &Connection,
    call: &McpCall<'_>,
    limits: Limits,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<CallReply, Fault> {
    let params = CallToolRequestParams::new(call.tool.to_owned()).with_arguments(call.arguments.clone());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let mut meta = trace_meta(call.trace);
    meta.insert("io.toolgate/idempotency-key".into(), format!("{}/{}", call.run, call.call).into());
    let result = connection.exchange(request, meta, limits, progress).await?;
    answer::read(result).map(|output| Outcome::Returned(output).into()).map_err(Fault::Unreadable)
}

/// The trace context as `_meta` carries it (SEP-414). An empty `tracestate` is none.
pub(super) fn trace_meta(trace: &SpanContext) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert("traceparent".into(), trace.traceparent().into());
    if let Some(state) = trace.state.as_ref().filter(|state| !state.trim().is_empty()) {
        meta.insert("tracestate".into(), state.clone().into());
    }
    meta
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::trace::Trace;

    #[test]
    fn an_empty_tracestate_is_never_sent() {
        let mut trace =
            Trace::from_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").expect("valid");
        for (state, sent) in [(None, None), (Some(""), None), (Some(" "), None), (Some("a=1"), Some("a=1"))] {
            trace.state = state.map(str::to_owned);
            let meta = trace_meta(&trace.context("call"));
            assert_eq!(meta.get("tracestate").and_then(Value::as_str), sent);
            assert!(meta.contains_key("traceparent"));
        }
    }
}
