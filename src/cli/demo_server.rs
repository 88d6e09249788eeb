//! `toolgate demo-server`: the bundled example MCP server over stdio. The command is hidden: programs start it.

use clap::Args;

use super::error::CliError;
use super::exit::Exit;
use crate::core::error::ErrorCode;
use crate::mcp::demo;

/// Serve the bundled example shop as an MCP server over stdio
#[derive(Args, Debug)]
pub(super) struct DemoServer {}

impl DemoServer {
    pub(super) async fn execute(self) -> Result<Exit, CliError> {
        let served = demo::serve_stdio().await;
        served.map(|()| Exit::Done).map_err(|error| CliError::new(ErrorCode::Internal, error.to_string()))
    }
}
