//! Model server, MCP servers and collector: this program in other processes, so that their work does not count.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::workload;

/// The processes, and their addresses.
pub struct Peers {
    processes: Vec<Child>,
    pub model: String,
    pub collector: String,
    mcp: Vec<(usize, String)>,
}

impl Peers {
    pub fn start() -> Self {
        let mut processes = Vec::new();
        let mut start = |role: &str| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let mut process = command.arg(role).stdout(Stdio::piped()).spawn().unwrap();
            let mut url = String::new();
            BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
            processes.push(process);
            url.trim().to_owned()
        };
        let (model, collector) = (start("serve-model"), start("serve-collector"));
        let mcp = [3, 300].map(|tools| (tools, format!("{}/mcp", start(&format!("serve-mcp-{tools}")))));
        Self { processes, model: format!("{model}/v1"), collector, mcp: mcp.into() }
    }

    /// The address of the MCP server with this many tools.
    pub fn mcp(&self, tools: usize) -> &str {
        &self.mcp.iter().find(|(has, _)| *has == tools).unwrap().1
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Serves until it is killed. Prints its address in one line.
pub fn serve(role: &str) {
    let app = match role {
        "serve-model" => Router::new().route(
            "/v1/chat/completions",
            post(|Json(request): Json<Value>| async move { Json(workload::reply(&request)) }),
        ),
        "serve-collector" => Router::new().fallback(|_: Bytes| async {}),
        _ => {
            let files = Files::new(role.trim_start_matches("serve-mcp-").parse().unwrap());
            let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
            let service =
                StreamableHttpService::new(move || Ok(files.clone()), LocalSessionManager::default().into(), config);
            Router::new().nest_service("/mcp", service)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("http://{}", listener.local_addr().unwrap());
        let listener = listener.tap_io(|socket| socket.set_nodelay(true).unwrap());
        axum::serve(listener, app.layer(DefaultBodyLimit::disable())).await.unwrap();
    });
}

/// A server with many tools.
#[derive(Clone)]
struct Files(Arc<Vec<Tool>>);

impl Files {
    fn new(tools: usize) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "Path below the root of the project" },
                "size": { "type": "integer", "minimum": 1, "description": "The most bytes to return" },
            },
            "required": ["text"],
        });
        let schema = Arc::new(schema.as_object().unwrap().clone());
        let tool = |number| {
            let description = "Reads part of a file and returns it with line numbers. Long files are cut.";
            let tool = Tool::new(format!("tool_{number}"), description, schema.clone());
            tool.with_annotations(ToolAnnotations::new().read_only(true))
        };
        Self(Arc::new((0..tools).map(tool).collect()))
    }
}

impl ServerHandler for Files {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(Vec::clone(&self.0)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let size = arguments["size"].as_u64().unwrap();
        let text = "    1  fn main() {}\n".repeat(usize::try_from(size).unwrap() / 20);
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
