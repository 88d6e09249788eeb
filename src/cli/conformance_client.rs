//! `toolgate conformance-client`: the client under test of the official MCP conformance suite. The command is hidden:
//! the suite starts it with a scenario name in the environment (`scripts/check-conformance`).

use clap::Args;

use super::error::CliError;
use super::exit::Exit;
use crate::core::error::ErrorCode;
use crate::mcp::conformance::Scenario;

/// Play a scenario of the MCP conformance suite against a server
#[derive(Args, Debug)]
pub(super) struct ConformanceClient {
    /// The server's address
    url: String,
}

impl ConformanceClient {
    pub(super) async fn execute(self) -> Result<Exit, CliError> {
        let played = Scenario::from_environment().play(&self.url).await;
        played.map(|()| Exit::Done).map_err(|why| CliError::new(ErrorCode::Internal, why))
    }
}
