//! An MCP server for a single run, and an approval from Rust. The server is a handler in the application itself, without a
//! process or a socket. Under the policy `default`, each of its calls waits for a person's approval. Its tools are named, validated, checked by the policy and journaled like those of any other server. No other run sees them. The
//! journal contains only the name of the server, so a process that resumes such a run must attach the server again
//! (`AgentRunner::inject`).
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use serde_json::json;
use toolgate::mcp::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use toolgate::mcp::rmcp::service::RequestContext;
use toolgate::mcp::rmcp::{ErrorData, RoleServer, ServerHandler};
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::prelude::*;

/// The subject of this request. It belongs to one customer, so its server belongs to one run.
#[derive(Clone)]
struct Basket(Arc<Vec<&'static str>>);

impl ServerHandler for Basket {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().cloned().unwrap_or_default();
        let look = Tool::new("look", "Says what is in the customer's basket.", Arc::new(schema));
        Ok(ListToolsResult::with_all_items(vec![look]))
    }

    async fn call_tool(
        &self,
        _call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text(self.0.join(", "))]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let turns = json!({"turns": [
        {"calls": [{"name": "mcp_basket_look"}]},
        {"say": "There are {{last_result}} in your basket."},
    ]});
    let model = Arc::new(ScriptedModel::new("scripted", Script::from_json(&turns.to_string())?));
    let shop = Agent::new("shop", model);
    let runner = AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(shop).build()?;

    let basket = Basket(Arc::new(vec!["tea", "two cups"]));
    let server = Servers::in_process("basket", move || basket.clone());
    let request = Request::new("shop", "What did I choose?").inject("basket", server.clone());
    let report = runner.execute(request).await?;

    let mut answers = Resume::new();
    for item in &report.pending {
        let PendingItem::Approval(approval) = item else { continue };
        println!("approved: {} {}", approval.tool_name, approval.arguments.to_value());
        answers = answers.approve(approval.call_id.clone(), "ada");
    }
    let report = runner.resume(&report.run_id, answers).await?;

    println!("{}", report.output.ok_or("the run came to no answer")?.text);
    runner.close().await;
    server.close().await;
    Ok(())
}
