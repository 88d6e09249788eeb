//! `toolgate models`: lists the configured models and tests one of them.

mod check;
mod endpoint;
mod examiner;
mod finding;
mod list;
mod questions;

use clap::{Args, Subcommand};

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
pub(super) use endpoint::{host, place};
pub(super) use finding::remedy_for;

const EXAMPLES: &str = "\
Examples:
  toolgate models
  toolgate models check main
  toolgate models check main --json | jq '.checks[] | select(.works == false)'

`check` makes five small calls to the model and reports their cost. It exits with 0 if the model
answers and calls a tool; the other findings are informational.";

/// List the configured models, or check what works with one
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Models {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    list: list::List,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
}

impl Models {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        match self.command {
            None => self.list.execute(out),
            Some(Command::Check(command)) => command.execute(out).await,
        }
    }
}
