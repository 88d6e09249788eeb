//! `toolgate policy`: checks policies, explains verdicts, backtests policies on past calls and imports them.

mod backtest;
mod check;
mod explain;
mod import;

use clap::{Args, Subcommand};

pub(super) use self::check::warning_in_words;
use super::error::CliError;
use super::exit::Exit;
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  toolgate policy check approvals/*.yaml
  toolgate policy explain mcp_shop_refund '{\"amount\": 250}'
  toolgate policy explain refund '{\"amount\": 250}' --server shop --file strict.yaml
  toolgate policy backtest strict.yaml --since 7d
  toolgate policy import .claude/settings.json -o claude.yaml

docs/policy.md explains how to write policies.";

/// Check policies, explain their verdicts, test them on past runs, import them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct PolicyCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
    Explain(Box<explain::Explain>),
    Backtest(backtest::Backtest),
    Import(import::Import),
}

impl PolicyCommand {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        match self.command {
            Command::Check(command) => command.execute(out),
            Command::Explain(command) => command.execute(out).await,
            Command::Backtest(command) => command.execute(out).await,
            Command::Import(command) => command.execute(out),
        }
    }
}
