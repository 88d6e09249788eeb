//! `toolgate keys`: API keys that applications use to authenticate at the gateway.

mod create;
mod list;
mod revoke;
mod rotate;

use clap::{Args, Subcommand};

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  toolgate keys create laptop --all
  toolgate keys create ci --scope runs:read --scope runs:write --expires 90d
  TOOLGATE_KEY=$(toolgate keys create shop --tenant acme --scope runs:write)
  toolgate keys list
  toolgate keys rotate key_0199 --overlap 8h
  toolgate keys revoke key_0199

A key is shown once, on standard output alone. Send it as `Authorization: Bearer tg_…`.";

/// Create, list, rotate and revoke the API keys of `toolgate serve`
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Keys {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Create),
    List(list::List),
    Revoke(revoke::Revoke),
    Rotate(rotate::Rotate),
}

impl Keys {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        match self.command {
            Command::Create(command) => command.execute(out).await,
            Command::List(command) => command.execute(out).await,
            Command::Revoke(command) => command.execute(out).await,
            Command::Rotate(command) => command.execute(out).await,
        }
    }
}
