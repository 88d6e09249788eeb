//! The bundled example server as a process of its own: point any MCP client at it over stdio.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), toolgate::mcp::demo::DemoError> {
    toolgate::mcp::demo::serve_stdio().await
}
