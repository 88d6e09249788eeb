//! Subjects of the measurement: a bare client of the SDK, and toolgate's client.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, PeerRequestOptions, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Map, Value, json};
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::tool::CallReply;
use toolgate::core::trace::{SpanContext, Trace, TraceId};
use toolgate::mcp::{self, ServerSettings, Servers};
use toolgate::ports::{McpCall, McpServers};

use crate::path::{Era, Path, Wire};

/// A connected client. Calls go to its first server.
pub enum Subject {
    Bare(Vec<RunningService<RoleClient, ClientConfig>>),
    Ours { servers: Arc<Servers>, first: ServerId },
}

/// A server over HTTP; killed when dropped.
pub struct HttpServer {
    process: Child,
    pub url: String,
}

impl HttpServer {
    pub fn start() -> Self {
        let mut command = this_program();
        let mut process = command.arg("serve-http").stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

impl Subject {
    pub async fn bare(path: &Path, url: &str, servers: usize) -> Self {
        Self::Bare(join_all((0..servers).map(|_| bare_client(path, url))).await)
    }

    pub async fn ours(path: &Path, url: &str, servers: usize) -> Self {
        let settings = || {
            let settings = match path.wire {
                Wire::Http => ServerSettings::http(url),
                Wire::Stdio => {
                    ServerSettings::stdio(std::env::current_exe().unwrap().to_str().unwrap(), ["serve-stdio"])
                }
            };
            let protocol_version = match path.era {
                Era::Legacy => mcp::ProtocolVersionChoice::Legacy,
                Era::Modern => mcp::ProtocolVersionChoice::Modern,
            };
            ServerSettings { protocol_version, ..settings }
        };
        let ids: Vec<ServerId> = (0..servers).map(|number| ServerId::from(format!("s{number}"))).collect();
        let servers = Arc::new(Servers::new(ids.iter().map(|id| (id.clone(), settings()))));
        for listed in servers.list(&ids, &trace()).await {
            assert_eq!((listed.tools.len(), listed.left_out), (1, Vec::new()));
        }
        Self::Ours { servers, first: ids[0].clone() }
    }

    /// One call and its answer.
    pub fn call(&self) -> BoxFuture<'_, ()> {
        match self {
            Self::Bare(clients) => Box::pin(bare_call(&clients[0])),
            Self::Ours { servers, first } => Box::pin(our_call(servers, first)),
        }
    }

    pub async fn close(self) {
        match self {
            Self::Bare(clients) => {
                join_all(clients.into_iter().map(|mut client| async move { drop(client.close().await) })).await;
            }
            Self::Ours { servers, .. } => servers.close().await,
        }
    }
}

async fn bare_client(path: &Path, url: &str) -> RunningService<RoleClient, ClientConfig> {
    let (version, lifecycle) = match path.era {
        Era::Legacy => (ProtocolVersion::LATEST_WITH_INITIALIZE, ClientLifecycleMode::Initialize),
        Era::Modern => {
            let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
            (ProtocolVersion::V_2026_07_28, ClientLifecycleMode::Discover { preferred_versions })
        }
    };
    let client = ClientConfig::new(ClientCapabilities::default(), Implementation::new("bare", "1"));
    let client = client.with_protocol_version(version);
    match path.wire {
        Wire::Stdio => {
            let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
            command.arg("serve-stdio");
            client.serve_with_lifecycle(TokioChildProcess::new(command).unwrap(), lifecycle).await.unwrap()
        }
        Wire::Http => {
            let http = reqwest::Client::builder().tcp_nodelay(true).build().unwrap();
            let config = StreamableHttpClientTransportConfig::with_uri(url);
            let transport = StreamableHttpClientTransport::with_client(http, config);
            client.serve_with_lifecycle(transport, lifecycle).await.unwrap()
        }
    }
}

async fn bare_call(client: &RunningService<RoleClient, ClientConfig>) {
    let params = CallToolRequestParams::new("echo").with_arguments(arguments());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let handle = client.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    handle.await_response().await.unwrap();
}

async fn our_call(servers: &Servers, server: &ServerId) {
    let (run, call, arguments, trace) = (RunId::from("run"), CallId::from("call"), arguments(), trace());
    let call = McpCall {
        run: &run,
        call: &call,
        server,
        tool: "echo",
        arguments: &arguments,
        is_repeatable: false,
        trace: &trace,
        deadline: None,
        answered: None,
        elicitation: None,
    };
    let reply = servers.call(call, &|_| {}).await.reply;
    let CallReply::Ended { outcome, .. } = reply else { unreachable!("an echo is never suspended") };
    assert!(!outcome.is_error(), "{outcome:?}");
}

fn arguments() -> Map<String, Value> {
    json!({"text": "sixteen bytes...."}).as_object().unwrap().clone()
}

fn trace() -> SpanContext {
    Trace::new(TraceId([7; 16]), true).context("bench")
}
