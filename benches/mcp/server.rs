//! Echo server under test. It is this program in another process, so that its work does not count as the client's.

use axum::Router;
use axum::serve::ListenerExt;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::schemars::JsonSchema;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use serde::Deserialize;

#[derive(Clone)]
struct Echo;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Said {
    text: String,
}

#[tool_router]
impl Echo {
    #[tool(description = "Says it again.")]
    fn echo(&self, Parameters(said): Parameters<Said>) -> String {
        said.text
    }
}

#[tool_handler(router = Self::tool_router())]
impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Serves until stdin ends.
pub fn stdio() {
    runtime().block_on(async {
        let running = Echo.serve(rmcp::transport::stdio()).await.unwrap();
        running.waiting().await.unwrap();
    });
}

/// Serves until it is killed. Prints its address in one line.
pub fn http() {
    runtime().block_on(async {
        let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
        let service = StreamableHttpService::new(|| Ok(Echo), LocalSessionManager::default().into(), config);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("http://{}/mcp", listener.local_addr().unwrap());
        let listener = listener.tap_io(|socket| socket.set_nodelay(true).unwrap());
        axum::serve(listener, Router::new().nest_service("/mcp", service)).await.unwrap();
    });
}
