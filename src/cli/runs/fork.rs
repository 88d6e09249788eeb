//! `toolgate runs fork` and `toolgate runs retry`: a new run that starts with a copy of another run's history, beside it or
//! in its place.

use clap::Args;

use crate::app::App;
use crate::cli::caller::Caller;
use crate::cli::drive_to_idle::settle;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::follow::Display;
use crate::cli::follow_options::Tasks;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::core::chat::Message;
use crate::core::id::{ModelName, RunId};
use crate::core::run::{Event, JournalEntry, TighterLimits};
use crate::core::trace::Trace;
use crate::runner;

const FORKS: &str = "\
Examples:
  toolgate runs fork last                                 calls the model again where the run ended
  toolgate runs fork last --at 12                         resumes after its twelfth event (runs export shows them)
  toolgate runs fork last --message \"Look again\"          replies to its answer
  toolgate runs fork last --max-iterations 30             allows more turns than the run had

The fork leaves the other run unchanged and has a budget of its own. It does not repeat a call that was in
progress at that point.";

const RETRIES: &str = "\
Examples:
  toolgate runs retry last                                calls the model again where the run ended
  toolgate runs retry last --message \"In English, please\"
  toolgate runs retry last --max-iterations 30            allows more turns than the run had
  toolgate runs retry last --model local                  asks another model, after the first one failed

The new run takes the place of the other one in its session, and has a budget of its own. Only the latest run of a
session can be retried; `toolgate runs fork` copies any other. A call that was in progress is not repeated.";

/// Fork a run: start a new run with a copy of its history
#[derive(Args, Debug)]
#[command(after_help = FORKS)]
pub(super) struct Fork {
    #[command(flatten)]
    pub(super) copy: Copy,

    /// How many of its events are copied [default: as many as leave the fork something to do]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    at: Option<u64>,
}

/// Retry an ended run in its session
#[derive(Args, Debug)]
#[command(after_help = RETRIES)]
pub(super) struct Retry {
    #[command(flatten)]
    pub(super) copy: Copy,

    /// Asks another model, if the run has no reply of a model yet [default: that of the run]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

/// The arguments of both commands.
#[derive(Args, Debug)]
pub(super) struct Copy {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

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

    /// Uses another approval policy [default: that of the other run]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,

    #[command(flatten)]
    caller: Caller,
}

/// How the new run relates to the other one.
enum Relation {
    Fork { at: Option<u64> },
    Retry { model: Option<ModelName> },
}

impl Fork {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        self.copy.execute(Relation::Fork { at: self.at }, out).await
    }
}

impl Retry {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        self.copy.execute(Relation::Retry { model: self.model.as_deref().map(ModelName::from) }, out).await
    }
}

impl Copy {
    async fn execute(&self, relation: Relation, out: &mut Output) -> Result<Exit, CliError> {
        let mut settings = setup::settings(&self.config)?;
        self.changes.apply(&mut settings, None)?;
        // As for `run`: the user of this command owns the configuration, so this limit may be higher than the
        // configured one.
        if let Some(most) = self.max_iterations {
            settings.agents.values_mut().for_each(|agent| {
                agent.limits.max_iterations = agent.limits.max_iterations.max(most);
            });
        }
        let policy = self.policy.as_deref().map(|name| setup::policy(&settings, name)).transpose()?;
        let mode = policy.map(|policy| policy.name.clone());
        if let Relation::Retry { model: Some(name) } = &relation {
            setup::model(&settings, name.as_str())?;
        }
        let trace = self.caller.trace(out)?;
        let app = setup::open(settings).await?;
        let ended = self.start(&app, relation, mode, trace, out).await;
        setup::close_after(&ended, app, out).await;
        ended
    }

    async fn start(
        &self,
        app: &App,
        relation: Relation,
        mode: Option<String>,
        trace: Option<Trace>,
        out: &mut Output,
    ) -> Result<Exit, CliError> {
        let run = find(app, &self.run).await?;
        let message = self.message.as_ref().map(|text| Message::user(text.clone()));
        let limits = TighterLimits { max_iterations: self.max_iterations, ..TighterLimits::default() };
        let (execution, verb) = match relation {
            Relation::Fork { at } => {
                let fork = runner::Fork { at, message, limits, mode, trace, ..runner::Fork::default() };
                (app.runner.fork(&run, fork).await?, "forks")
            }
            Relation::Retry { model } => {
                let chosen = model.clone();
                let retry = runner::Retry { message, limits, mode, model, trace, ..runner::Retry::default() };
                let execution = app.runner.retry(&run, retry).await?;
                note_ignored_model(app, &execution.run, chosen.as_ref(), out).await?;
                (execution, "retries")
            }
        };
        let display = Display::choose(self.json, self.quiet, out);
        if !display.is_json() {
            out.note(format!("{} {verb} {run}", execution.run));
        }
        let (copied, again) = (copied(app, &execution.run).await?, setup::again(&self.config, &self.changes));
        settle(app, execution, &copied, display, Tasks::InTerminal.into(), &again, out).await
    }
}

/// Tells if a retry goes on with the model of the run in place of the chosen one.
pub(in crate::cli) async fn note_ignored_model(
    app: &App,
    retry: &RunId,
    chosen: Option<&ModelName>,
    out: &mut Output,
) -> Result<(), CliError> {
    let going_on = app.runner.load(retry).await?.started().spec.model.clone();
    if chosen.is_some_and(|chosen| *chosen != going_on) {
        out.note(format!("model {going_on} goes on with the turn that it began"));
    }
    Ok(())
}

/// The events that a run has from another one.
pub(in crate::cli) async fn copied(app: &App, run: &RunId) -> Result<Vec<JournalEntry>, CliError> {
    let mut journal = app.runner.journal(run).await?;
    let copied = copied_length(&journal);
    journal.retain(|entry| entry.seq < copied);
    Ok(journal)
}

/// How many events at the beginning of a journal are from another run.
pub(in crate::cli) fn copied_length(journal: &[JournalEntry]) -> u64 {
    match journal.first().map(|first| &first.event) {
        Some(Event::Started(started)) => started.trigger.copied(),
        Some(_) | None => 0,
    }
}
