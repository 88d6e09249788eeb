//! Demo MCP server: the support desk of a small shop, entirely in memory. It lets users try toolgate without
//! installing anything, and its latencies are long enough to show that calls run in parallel.

mod desk;
mod shop;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;

use desk::Desk;

/// Why the demo server ended early.
#[derive(Debug, thiserror::Error)]
#[error("the example server stopped: {0}")]
pub struct DemoError(String);

/// Serves the shop on stdin and stdout until stdin is closed.
pub async fn serve_stdio() -> Result<(), DemoError> {
    let stopped = |error: &dyn std::fmt::Display| DemoError(error.to_string());
    let running = match Desk::open().serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        // A client checked that the server starts, and disconnected.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(stopped(&error)),
    };
    running.waiting().await.map(drop).map_err(|error| stopped(&error))
}
