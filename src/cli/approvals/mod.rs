//! `toolgate approvals`: pending approvals and questions, and grants.

mod answer;
mod approve;
mod calls;
mod context;
mod continue_run;
mod deny;
mod expire;
mod extend;
mod grants;
mod inbox;
mod list;
mod revoke;
mod show;
mod suggest;

use clap::{Args, Subcommand};

pub(super) use self::context::note_context;
pub(super) use self::grants::grant_lines;
pub(super) use self::revoke::{print_revoked, revoke};

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::prompt;
use super::setup::ConfigFlag;

const EXAMPLES: &str = "\
Examples:
  toolgate approvals                  in a terminal, asks about everything that is pending
  toolgate approvals list
  toolgate approvals show last call_2
  toolgate approvals approve last call_2
  toolgate approvals approve last --all
  toolgate approvals deny last call_2 --reason 'not before Friday'
  toolgate approvals answer last call_4 'the blue one'
  toolgate approvals grants
  toolgate approvals suggest > approvals/suggested.yaml

RUN is an id, a unique beginning or end of one, or `last`. A decision applies only to the call as it
is when you decide: if the tool, its arguments or the policy change before the call is sent, the
call requires approval again, with the differences shown (exit code 8).";

/// List and decide pending approvals and questions, and manage grants
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Approvals {
    #[command(flatten)]
    config: ConfigFlag,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Approve(Box<approve::Approve>),
    Deny(Box<deny::Deny>),
    Answer(Box<answer::Answer>),
    Extend(extend::Extend),
    Expire(expire::Expire),
    Grants(grants::Grants),
    Revoke(revoke::Revoke),
    Suggest(suggest::Suggest),
}

impl Approvals {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let command = match self.command {
            Some(command) => command,
            None if out.is_terminal() && prompt::is_person_at_terminal() => {
                return inbox::decide(&self.config, out).await;
            }
            None => Command::List(list::List::everything(self.config)),
        };
        match command {
            Command::List(command) => command.execute(out).await,
            Command::Show(command) => command.execute(out).await,
            Command::Approve(command) => command.execute(out).await,
            Command::Deny(command) => command.execute(out).await,
            Command::Answer(command) => command.execute(out).await,
            Command::Extend(command) => command.execute(out).await,
            Command::Expire(command) => command.execute(out).await,
            Command::Grants(command) => command.execute(out).await,
            Command::Revoke(command) => command.execute(out).await,
            Command::Suggest(command) => command.execute(out).await,
        }
    }

    /// Whether the last output line must be a result, even after an error.
    pub(super) fn ends_with_result(&self) -> bool {
        match &self.command {
            Some(Command::Approve(command)) => command.ends_with_result(),
            Some(Command::Deny(command)) => command.ends_with_result(),
            Some(Command::Answer(command)) => command.ends_with_result(),
            None
            | Some(
                Command::List(_)
                | Command::Show(_)
                | Command::Extend(_)
                | Command::Expire(_)
                | Command::Grants(_)
                | Command::Revoke(_)
                | Command::Suggest(_),
            ) => false,
        }
    }
}
