//! In-process servers: a handler without a process or a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use toolgate::mcp::Servers;
use toolgate::mcp::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use toolgate::mcp::rmcp::service::RequestContext;
use toolgate::mcp::rmcp::{ErrorData, RoleServer, ServerHandler};

use super::support::{call, names, text};

/// Counts how often it was created and called.
#[derive(Clone, Default)]
struct Counter {
    made: Arc<AtomicUsize>,
    called: Arc<AtomicUsize>,
}

impl ServerHandler for Counter {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().unwrap().clone();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("count", "Counts.", Arc::new(schema))]))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let count = self.called.fetch_add(1, Ordering::SeqCst) + 1;
        let big = call.arguments.is_some_and(|arguments| arguments.contains_key("big"));
        let text = if big { "x".repeat(20 * 1024 * 1024) } else { count.to_string() };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn in_process(counter: &Counter) -> Arc<Servers> {
    let counter = counter.clone();
    Servers::in_process("own", move || {
        counter.made.fetch_add(1, Ordering::SeqCst);
        counter.clone()
    })
}

#[tokio::test]
async fn a_handler_of_the_host_is_listed_and_called_like_any_server() {
    let counter = Counter::default();
    let servers = in_process(&counter);
    assert_eq!(names(&servers, "own").await, ["count"]);
    assert_eq!(text(call(&servers, "own", "count", json!({})).await), "1");
    assert_eq!(text(call(&servers, "own", "count", json!({})).await), "2");
    assert_eq!(counter.made.load(Ordering::SeqCst), 1, "one connection for all");
    servers.close().await;
    assert_eq!(Arc::strong_count(&counter.called), 2, "the handler is dropped, and the factory is left");
}

#[tokio::test]
async fn an_answer_of_any_size_comes_through() {
    let servers = in_process(&Counter::default());
    assert_eq!(text(call(&servers, "own", "count", json!({"big": true})).await).len(), 20 * 1024 * 1024);
    servers.close().await;
}
