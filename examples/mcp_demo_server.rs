//! The bundled example server as its own process: connect any MCP client to it over stdio.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), toolgate::mcp::demo::DemoError> {
    toolgate::mcp::demo::serve_stdio().await
}
