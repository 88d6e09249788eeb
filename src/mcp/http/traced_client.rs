//! Request data repeated as HTTP headers: the trace context, because proxies and web frameworks do not read `_meta`,
//! and the arguments that a tool annotates for routing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion};
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpPostResponse};
use serde_json::Value;

use super::client::{Client, Events, Failure, Headers};
use super::post::{self, Target};
use super::seen::Seen;

/// An HTTP client that adds `traceparent`, `tracestate`, `baggage` and `mcp-param-*` to its posts.
#[derive(Clone, Debug)]
pub(super) struct TracedClient {
    client: Client,
    seen: Seen,
    /// The trace context of the latest request, which the request that ends the session repeats.
    latest: Arc<Mutex<Headers>>,
}

impl TracedClient {
    /// Wraps this client. The header annotations come from the observed tools.
    pub(super) fn over(client: Client, seen: Seen) -> Self {
        Self { client, seen, latest: Arc::default() }
    }

    /// The observations of the connection.
    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Posts a message.
    pub(super) async fn post(
        &self,
        mut target: Target,
        message: &ClientJsonRpcMessage,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.add_headers(&mut target.headers, message);
        post::post(&self.client, target, message, &self.seen, lists_tools(message)).await
    }

    /// Opens the stream of a session, or the rest of one that ended.
    pub(super) async fn get(&self, target: Target, last_event: Option<String>) -> Result<Events, Failure> {
        post::get(&self.client, target, last_event, &self.seen).await
    }

    /// Ends a session, in the trace context of the latest request in it.
    pub(super) async fn delete(&self, target: Target) -> Result<(), Failure> {
        let Target { uri, session, token, mut headers, .. } = target;
        headers.extend(self.latest().clone());
        self.client.pooled().delete_session(uri, session.unwrap_or_default(), token, headers).await
    }

    fn latest(&self) -> MutexGuard<'_, Headers> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_headers(&self, headers: &mut Headers, message: &ClientJsonRpcMessage) {
        let context = trace_headers(message);
        if !context.is_empty() {
            self.latest().clone_from(&context);
        }
        headers.extend(context);
        for (name, value) in self.arguments(message) {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
    }

    /// Only servers of the modern era request arguments in headers.
    fn arguments(&self, message: &ClientJsonRpcMessage) -> Vec<(String, String)> {
        let ClientJsonRpcMessage::Request(request) = message else { return Vec::new() };
        let ClientRequest::CallToolRequest(call) = &request.request else { return Vec::new() };
        if !is_modern(&request.request) {
            return Vec::new();
        }
        let arguments = call.params.arguments.clone().unwrap_or_default();
        self.seen.tools.of_call(&call.params.name, &Value::Object(arguments))
    }
}

fn is_modern(request: &ClientRequest) -> bool {
    request.get_meta().protocol_version().is_some_and(|version| version >= ProtocolVersion::STANDARD_HEADERS)
}

/// Whether a `tools/list` request is one of the modern era; `None` for any other message.
fn lists_tools(message: &ClientJsonRpcMessage) -> Option<bool> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    matches!(request.request, ClientRequest::ListToolsRequest(_)).then(|| is_modern(&request.request))
}

/// The trace context of a request, as headers.
fn trace_headers(message: &ClientJsonRpcMessage) -> Headers {
    let ClientJsonRpcMessage::Request(request) = message else { return Headers::default() };
    let header = |name| {
        let value = request.request.get_meta().get(name).and_then(Value::as_str)?;
        Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?))
    };
    ["traceparent", "tracestate", "baggage"].into_iter().filter_map(header).collect()
}
