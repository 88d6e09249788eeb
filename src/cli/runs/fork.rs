//! `toolgate runs fork`: a new run that starts with a copy of another run's history.

use clap::Args;

use crate::app::App;
use crate::cli::caller::Caller;
use crate::cli::drive_to_idle::{Tasks, settle};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::follow::Display;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::core::chat::Message;
use crate::core::run::TighterLimits;
use crate::core::trace::Trace;
use crate::runner::Fork as Copied;

const EXAMPLES: &str = "\
Examples:
  toolgate runs fork last                                 calls the model again where the run ended
  toolgate runs fork last --at 12                         resumes after its twelfth event (runs export shows them)
  toolgate runs fork last --message \"Look again\"          replies to its answer
  toolgate runs fork last --max-iterations 30             allows more turns than the run had

The fork leaves the other run unchanged and has a budget of its own. It does not repeat a call that was in
progress at that point.";

/// Fork a run: start a new run with a copy of its history
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Fork {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// How many of its events are copied [default: as many as leave the fork something to do]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    at: Option<u64>,

    /// A message to add to the new run
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,

    /// Limits the new run to this number of model turns [default: the limit of the other run]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_iterations: Option<u32>,

    /// Prints one lifecycle event per line as JSON, and the result as the last line
    #[arg(long)]
    pub(super) json: bool,

    /// Prints nothing but the answer and what is pending
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    changes: ConfigOverrides,

    #[command(flatten)]
    caller: Caller,
}

impl Fork {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let mut settings = setup::settings(&self.config)?;
        self.changes.apply(&mut settings, None)?;
        // As for `run`: the user of this command owns the configuration, so this limit may be higher than the
        // configured one.
        if let Some(most) = self.max_iterations {
            settings.agents.values_mut().for_each(|agent| {
                agent.limits.max_iterations = agent.limits.max_iterations.max(most);
            });
        }
        let trace = self.caller.trace(out)?;
        let app = setup::open(settings).await?;
        let ended = self.fork(&app, trace, out).await;
        setup::close_after(&ended, app, out).await;
        ended
    }

    async fn fork(&self, app: &App, trace: Option<Trace>, out: &mut Output) -> Result<Exit, CliError> {
        let run = find(app, &self.run).await?;
        let message = self.message.as_ref().map(|text| Message::user(text.clone()));
        let limits = TighterLimits { max_iterations: self.max_iterations, ..TighterLimits::default() };
        let fork = Copied { at: self.at, message, limits, trace, ..Copied::default() };
        let execution = app.runner.fork(&run, fork).await?;
        let display = Display::choose(self.json, self.quiet, out);
        if !display.is_json() {
            out.note(format!("{} forks {run}", execution.run));
        }
        settle(app, execution, &[], display, Tasks::InTerminal.into(), &setup::again(&self.config, &self.changes), out)
            .await
    }
}
