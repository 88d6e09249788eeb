//! Request data repeated as HTTP headers: the trace context, because proxies and web frameworks do not read `_meta`,
//! and the arguments that a tool annotates for routing.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion};
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpPostResponse};
use serde_json::Value;

use super::client::{Client, Failure, Headers};
use super::post::{self, Target};
use super::reader::Events;
use super::seen::Seen;
use crate::transport::MAX_TEXT;

/// An HTTP client that adds `traceparent`, `tracestate`, `baggage` and `mcp-param-*` to its posts.
#[derive(Clone, Debug)]
pub(crate) struct TracedClient {
    client: Client,
    seen: Seen,
}

impl TracedClient {
    /// Wraps this client. The header annotations come from the observed tools.
    pub(super) fn over(client: Client, seen: Seen) -> Self {
        Self { client, seen }
    }

    fn add_headers(&self, headers: &mut Headers, message: &ClientJsonRpcMessage) {
        trace(headers, message);
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

impl StreamableHttpClient for TracedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message_with_max_sse_event_size(uri, message, session_id, auth_header, headers, MAX_TEXT).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        mut headers: Headers,
        max: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.add_headers(&mut headers, &message);
        let target = Target { uri, session, token, headers, max };
        post::post(&self.client, target, &message, &self.seen, lists_tools(&message)).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.client.pooled().delete_session(uri, session_id, auth_header, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, headers, MAX_TEXT).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<Events, Failure> {
        let target = Target { uri, session, token, headers, max };
        post::get(&self.client, target, last_event_id, &self.seen).await
    }
}

/// Copies the trace context of a request into its headers.
fn trace(headers: &mut Headers, message: &ClientJsonRpcMessage) {
    let ClientJsonRpcMessage::Request(request) = message else {
        return;
    };
    for name in ["traceparent", "tracestate", "baggage"] {
        let value = request.request.get_meta().get(name).and_then(Value::as_str);
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}
