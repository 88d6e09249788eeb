//! The bundled example server: the support desk of a small shop, entirely in memory. It is there so that toolgate can be
//! tried without installing anything, and its latencies are real enough that calls made in parallel can be seen to be.

mod desk;
mod shop;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;

use desk::Desk;

/// Why the example server ended early.
#[derive(Debug, thiserror::Error)]
#[error("the example server stopped: {0}")]
pub struct DemoError(String);

/// Serves the shop on stdin and stdout until stdin is closed.
pub async fn serve_stdio() -> Result<(), DemoError> {
    let stopped = |error: &dyn std::fmt::Display| DemoError(error.to_string());
    let running = match Desk::open().serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        // Somebody looked whether it starts, and left.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(stopped(&error)),
    };
    running.waiting().await.map(drop).map_err(|error| stopped(&error))
}
