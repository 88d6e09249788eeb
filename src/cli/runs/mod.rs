//! `toolgate runs`: commands for stored runs.

mod cancel;
mod dataset;
mod events;
mod explain;
mod export;
mod feedback;
mod fork;
mod list;
mod pause;
mod recover;
mod selection;
mod show;
mod trace;

use clap::{Args, Subcommand};

pub(super) use self::fork::{copied, copied_length, note_ignored_model};
pub(super) use self::show::print_call;
pub(super) use self::trace::print_waterfall;

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  toolgate runs list --status pending
  toolgate runs show last
  toolgate runs explain last
  toolgate runs trace last
  toolgate runs events last --follow
  toolgate runs pause last
  toolgate runs cancel run_0199… --reason \"wrong customer\"
  toolgate runs fork last --message \"And the other order?\"
  toolgate runs retry last
  toolgate runs feedback last --name quality --score 0.8

RUN is an id, a unique beginning or end of one, or `last`.";

/// List, show, explain, trace, follow, pause, cancel, fork, retry, judge, export and recover runs
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Runs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Explain(explain::Explain),
    Trace(trace::TraceOf),
    Events(events::Events),
    Pause(pause::Pause),
    Cancel(cancel::Cancel),
    Fork(Box<fork::Fork>),
    Retry(Box<fork::Retry>),
    Feedback(feedback::GiveFeedback),
    Export(export::Export),
    Dataset(dataset::Dataset),
    Recover(recover::Recover),
}

impl Runs {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        match self.command {
            Command::List(command) => command.execute(out).await,
            Command::Show(command) => command.execute(out).await,
            Command::Explain(command) => command.execute(out).await,
            Command::Trace(command) => command.execute(out).await,
            Command::Events(command) => command.execute(out).await,
            Command::Pause(command) => command.execute(out).await,
            Command::Cancel(command) => command.execute(out).await,
            Command::Fork(command) => command.execute(out).await,
            Command::Retry(command) => command.execute(out).await,
            Command::Feedback(command) => command.execute(out).await,
            Command::Export(command) => command.execute(out).await,
            Command::Dataset(command) => command.execute(out).await,
            Command::Recover(command) => command.execute(out).await,
        }
    }

    /// Whether the command always prints a JSON result as its last line.
    pub(super) fn ends_with_result(&self) -> bool {
        match &self.command {
            Command::Fork(command) => command.copy.json,
            Command::Retry(command) => command.copy.json,
            Command::List(_)
            | Command::Show(_)
            | Command::Explain(_)
            | Command::Trace(_)
            | Command::Events(_)
            | Command::Pause(_)
            | Command::Cancel(_)
            | Command::Feedback(_)
            | Command::Export(_)
            | Command::Dataset(_)
            | Command::Recover(_) => false,
        }
    }
}
