//! `toolgate sessions`: commands for sessions, which are conversations of successive runs.

mod delete;
mod latest_runs;
mod list;
mod messages;
mod set;
mod show;

use clap::{Args, Subcommand};

pub(super) use self::latest_runs::LatestRuns;
use super::error::CliError;
use super::exit::Exit;
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  toolgate sessions list
  toolgate sessions show last
  toolgate sessions messages chat-77
  toolgate sessions set chat-77 --title \"Refund of order A-1077\" --max-cost-usd 5
  toolgate run --session chat-77 \"And the other order?\"

SESSION is an id, a unique beginning of one, or `last` for the session of the last run.";

/// List, show, read, change and delete sessions: conversations of successive runs
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Sessions {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Messages(messages::Messages),
    Set(Box<set::Set>),
    Delete(delete::Delete),
}

impl Sessions {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        match self.command {
            Command::List(command) => command.execute(out).await,
            Command::Show(command) => command.execute(out).await,
            Command::Messages(command) => command.execute(out).await,
            Command::Set(command) => command.execute(out).await,
            Command::Delete(command) => command.execute(out).await,
        }
    }
}
