//! `toolgate mcp`: direct access to MCP servers, for server authors. These commands use no store, no model and no run,
//! except those that record, replay and test runs.

mod add;
mod answer_flags;
mod call;
mod check;
mod check_files;
mod check_report;
mod config_file;
mod connected_server;
mod exchange;
mod fault_proxy;
mod list;
mod login;
mod logout;
mod record;
mod remove;
mod replay;
mod report;
mod result_files;
mod signature;
mod status;
mod target;
mod test;
mod test_watch;
mod tool_display;
mod wire_proxy;

use clap::{Args, Subcommand};

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
pub(super) use connected_server::{ConnectedServer, milliseconds};
pub(super) use status::visit_all;
pub(super) use target::ConfiguredServers;

const EXAMPLES: &str = "\
Examples:
  toolgate mcp list -- npx -y @modelcontextprotocol/server-everything
  toolgate mcp call echo '{\"message\": \"hi\"}' -- npx -y @modelcontextprotocol/server-everything
  toolgate mcp list http://localhost:3000/mcp --header 'Authorization: Bearer ${TOKEN}'
  toolgate mcp call shop get_invoice '{\"order_id\": \"A-1077\"}'
  toolgate mcp check -- node server.js
  toolgate mcp break --fault hang -- node server.js
  toolgate mcp add git -- uvx mcp-server-git
  toolgate mcp remove git
  toolgate mcp status
  toolgate mcp login crm

A server is one of the configuration, a command after `--`, or a URL.";

/// List, call, check and watch MCP servers, configured ones or any other; log in to them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Mcp {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(Box<add::Add>),
    Remove(remove::Remove),
    List(Box<list::List>),
    Call(Box<call::Call>),
    Check(Box<check::Check>),
    Break(Box<fault_proxy::Break>),
    Status(status::Status),
    Login(login::LogIn),
    Logout(logout::LogOut),
    Record(Box<record::Record>),
    Replay(Box<replay::Replay>),
    Test(test::Test),
}

impl Mcp {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        match self.command {
            Command::Add(command) => command.execute(out).await,
            Command::Remove(command) => command.execute(out),
            Command::List(command) => command.execute(out).await,
            Command::Call(command) => command.execute(out).await,
            Command::Check(command) => command.execute(out).await,
            Command::Break(command) => command.execute(out).await,
            Command::Status(command) => command.execute(out).await,
            Command::Login(command) => command.execute(out).await,
            Command::Logout(command) => command.execute(out).await,
            Command::Record(command) => command.execute(out).await,
            Command::Replay(command) => command.execute(out).await,
            Command::Test(command) => command.execute(out).await,
        }
    }

    /// Whether the command always prints a JSON result as its last line.
    pub(super) fn ends_with_result(&self) -> bool {
        match &self.command {
            Command::List(command) => command.json,
            Command::Call(command) => command.json,
            Command::Check(command) => command.json,
            Command::Status(command) => command.json,
            Command::Login(command) => command.json,
            Command::Logout(command) => command.json,
            Command::Add(_) | Command::Remove(_) | Command::Break(_) | Command::Record(_) => false,
            Command::Replay(command) => command.json,
            Command::Test(command) => command.json,
        }
    }
}
