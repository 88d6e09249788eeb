//! `toolgate mcp`: the MCP servers.

mod browser;
mod login;
mod logout;

use clap::{Args, Subcommand};

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  toolgate mcp login crm
  toolgate mcp logout crm";

/// Log in to MCP servers, and out of them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Mcp {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Login(login::LogIn),
    Logout(logout::LogOut),
}

impl Mcp {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        match self.command {
            Command::Login(command) => command.execute(out).await,
            Command::Logout(command) => command.execute(out).await,
        }
    }

    /// Whether the last line is to be a result, whatever happens.
    pub(super) fn ends_with_result(&self) -> bool {
        match &self.command {
            Command::Login(command) => command.json,
            Command::Logout(command) => command.json,
        }
    }
}
