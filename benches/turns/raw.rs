//! Floor: a hand-written agent loop over reqwest and rmcp. It appends to one request body, and has no journal, no checks and
//! no resume. It lists the tools once for all runs.

use futures::future::join_all;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    ProtocolVersion, ServerResult,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, PeerRequestOptions, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use crate::peers::Peers;
use crate::workload::Workload;

pub struct Raw {
    http: reqwest::Client,
    url: String,
    mcp: RunningService<RoleClient, ClientConfig>,
    /// The body of the first request, without its end.
    request: Vec<u8>,
}

impl Raw {
    pub async fn set_up(workload: &Workload, peers: &Peers) -> Self {
        let http = || reqwest::Client::builder().tcp_nodelay(true).build().unwrap();
        let config = StreamableHttpClientTransportConfig::with_uri(peers.mcp(workload.tools));
        let transport = StreamableHttpClientTransport::with_client(http(), config);
        let client = ClientConfig::new(ClientCapabilities::default(), Implementation::new("raw", "1"));
        let client = client.with_protocol_version(ProtocolVersion::V_2026_07_28);
        let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let mcp = client.serve_with_lifecycle(transport, lifecycle).await.unwrap();
        let tools: Vec<Value> = mcp.list_all_tools().await.unwrap().iter().map(|tool| json!({
            "type": "function",
            "function": { "name": format!("mcp_files_{}", tool.name), "description": tool.description, "parameters": tool.input_schema },
        })).collect();
        let [model, tools] = [json!(workload.model()), json!(tools)];
        let user = json!({ "role": "user", "content": "read everything" });
        let request = format!(r#"{{"model":{model},"tools":{tools},"messages":[{user}"#).into_bytes();
        Self { http: http(), url: format!("{}/chat/completions", peers.model), mcp, request }
    }

    /// One run from start to end.
    pub async fn run(&self) {
        let mut request = self.request.clone();
        loop {
            let body = [request.as_slice(), b"]}"].concat();
            let sent = self.http.post(&self.url).header("content-type", "application/json").body(body).send();
            let mut reply: Value = sent.await.unwrap().json().await.unwrap();
            let message = reply["choices"][0]["message"].take();
            append(&mut request, &message);
            let Some(calls) = message["tool_calls"].as_array() else { return };
            for result in join_all(calls.iter().map(|call| self.call(call))).await {
                append(&mut request, &result);
            }
        }
    }

    async fn call(&self, call: &Value) -> Value {
        let name = call["function"]["name"].as_str().unwrap().trim_start_matches("mcp_files_").to_owned();
        let arguments = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        let call_tool = CallToolRequest::new(CallToolRequestParams::new(name).with_arguments(arguments));
        let (request, options) = (ClientRequest::CallToolRequest(call_tool), PeerRequestOptions::no_options());
        let handle = self.mcp.peer().send_cancellable_request(request, options).await.unwrap();
        let ServerResult::CallToolResult(result) = handle.await_response().await.unwrap() else { unreachable!() };
        let text: String = result.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect();
        json!({ "role": "tool", "tool_call_id": call["id"], "content": text })
    }

    pub async fn tear_down(mut self) {
        self.mcp.close().await.unwrap();
    }
}

fn append(request: &mut Vec<u8>, message: &Value) {
    request.push(b',');
    serde_json::to_writer(request, message).unwrap();
}
