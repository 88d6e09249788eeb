//! What of a request is repeated as HTTP headers: its trace context, since proxies and web frameworks do not read `_meta`,
//! and the arguments that a tool wants to be routed by.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use reqwest::Client;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::Sse;

use super::confidential::Confidential;
use crate::mcp::headers::ToolHeaders;
use crate::mcp::task_only::TaskOnly;

pub(super) type Headers = HashMap<HeaderName, HeaderValue>;
pub(super) type Failure = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// An HTTP client that adds `traceparent`, `tracestate`, `baggage` and `mcp-param-*` to what it posts.
#[derive(Clone, Debug)]
pub(in crate::mcp) struct Traced {
    client: Client,
    tools: ToolHeaders,
    task_only: TaskOnly,
}

impl Traced {
    /// On top of this client. What tools want repeated is looked up in `tools`; those that have to be tasks are noted.
    pub(super) fn over(client: Client, tools: ToolHeaders, task_only: TaskOnly) -> Self {
        Self { client, tools, task_only }
    }

    fn add_headers(&self, headers: &mut Headers, message: &ClientJsonRpcMessage) {
        trace(headers, message);
        for (name, value) in self.arguments(message) {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
    }

    /// Only servers of the modern era ask for arguments in headers.
    fn arguments(&self, message: &ClientJsonRpcMessage) -> Vec<(String, String)> {
        let ClientJsonRpcMessage::Request(request) = message else { return Vec::new() };
        let ClientRequest::CallToolRequest(call) = &request.request else { return Vec::new() };
        if !is_modern(&request.request) {
            return Vec::new();
        }
        let arguments = call.params.arguments.clone().unwrap_or_default();
        self.tools.of_call(&call.params.name, &Value::Object(arguments))
    }

    /// Has a look at a list of tools on its way to the SDK.
    fn inspected(&self, response: StreamableHttpPostResponse, is_modern: bool) -> StreamableHttpPostResponse {
        #[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK")]
        match response {
            StreamableHttpPostResponse::Json(message, session) => {
                // What has to be a task cannot be seen here: the SDK reads such an answer by itself.
                if is_modern {
                    self.inspect(&message);
                }
                StreamableHttpPostResponse::Json(message, session)
            }
            StreamableHttpPostResponse::Sse(events, session) => {
                let tools = self.clone();
                let events = events.inspect(move |event| {
                    let data = event.as_ref().ok().and_then(|event| event.data.as_deref()).unwrap_or_default();
                    if !is_modern {
                        tools.task_only.look_at(data);
                    } else if let Ok(message) = serde_json::from_str(data) {
                        tools.inspect(&message);
                    }
                });
                StreamableHttpPostResponse::Sse(events.boxed(), session)
            }
            other => other,
        }
    }

    fn inspect(&self, message: &ServerJsonRpcMessage) {
        if let ServerJsonRpcMessage::Response(response) = message
            && let Ok(result) = serde_json::to_value(&response.result)
        {
            self.tools.inspect(&result);
        }
    }
}

fn is_modern(request: &ClientRequest) -> bool {
    request.get_meta().protocol_version().is_some_and(|version| version >= ProtocolVersion::STANDARD_HEADERS)
}

/// Whether a request for the tools is one of the modern era; nothing if it is no such request.
fn lists_tools(message: &ClientJsonRpcMessage) -> Option<bool> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    matches!(request.request, ClientRequest::ListToolsRequest(_)).then(|| is_modern(&request.request))
}

impl StreamableHttpClient for Traced {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        mut headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.add_headers(&mut headers, &message);
        let lists_tools = lists_tools(&message);
        let confidential = Confidential::of(&headers, auth_header.as_ref());
        let response = self.client.post_message(uri, message, session_id, auth_header, headers).await;
        let response = response.map_err(|failure| confidential.kept_out_of(failure))?;
        Ok(match lists_tools {
            Some(is_modern) => self.inspected(response, is_modern),
            None => response,
        })
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        mut headers: Headers,
        max: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.add_headers(&mut headers, &message);
        let lists_tools = lists_tools(&message);
        let confidential = Confidential::of(&headers, auth_header.as_ref());
        let posted =
            self.client.post_message_with_max_sse_event_size(uri, message, session_id, auth_header, headers, max);
        let response = posted.await.map_err(|failure| confidential.kept_out_of(failure))?;
        Ok(match lists_tools {
            Some(is_modern) => self.inspected(response, is_modern),
            None => response,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session_id, auth_header, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        self.client.get_stream(uri, session_id, last_event_id, auth_header, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<Events, Failure> {
        self.client.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, headers, max).await
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
