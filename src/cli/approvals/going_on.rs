//! What was decided is stored, and the run goes on: the common end of `approve`, `deny` and `answer`.

use clap::Args;

use super::calls::that_wait;
use super::show::whole;
use super::waiting::of_run;
use crate::app::App;
use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::follow::Display;
use crate::cli::output::Output;
use crate::cli::settle::{ResultLine, Tasks, settle};
use crate::cli::setup::{self, Changes, ConfigFlag};
use crate::cli::{close_after, report};
use crate::core::id::{CallId, RunId};
use crate::core::run::{Debt, Input, Refusal, Resume};
use crate::runner::RunnerError;

/// How the run goes on, and who says so.
#[derive(Args, Debug)]
pub(super) struct GoingOn {
    #[command(flatten)]
    config: ConfigFlag,

    /// Who decides; it is kept in the journal [default: the user of this terminal]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Waits for calls that go on at their servers as tasks
    #[arg(long)]
    wait: bool,

    /// Only stores it; the run goes on where it is driven, or with the next `toolgate runs recover`
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,

    /// Prints one lifecycle event per line as JSON, and the result as the last line
    #[arg(long)]
    pub(super) json: bool,

    /// Prints nothing but the answer and what is pending
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    changes: Changes,
}

impl GoingOn {
    /// Who decides.
    pub(super) fn by(&self) -> String {
        self.by.clone().unwrap_or_else(who)
    }

    /// Opens the program with what is changed for this command.
    pub(super) async fn open(&self) -> Result<App, CliError> {
        let mut settings = setup::settings(&self.config)?;
        self.changes.apply(&mut settings, None)?;
        setup::open(settings).await
    }

    /// Closes what was opened.
    pub(super) async fn close(ended: Result<Exit, CliError>, app: App, out: &mut Output) -> Result<Exit, CliError> {
        close_after(&ended, app, out).await;
        ended
    }

    /// Gives the run what was decided, and drives it on unless that is left to others.
    pub(super) async fn give(
        &self,
        app: &App,
        run: &RunId,
        resume: Resume,
        out: &mut Output,
    ) -> Result<Exit, CliError> {
        let decided: Vec<CallId> = resume.decisions.iter().map(|(call, _)| call.clone()).collect();
        let known = app.runner.journal(run).await?;
        if self.no_wait {
            return match app.runner.record(run, resume).await {
                Ok(report) => {
                    match self.json {
                        true => out.json(&ResultLine::of(&report)),
                        false => out.line(format!("{run} {}", report.status.as_str())),
                    }
                    Ok(Exit::Done)
                }
                Err(error) => self.refused(app, run, error, out).await,
            };
        }
        let execution = match app.runner.take_up(run, Input::Resume(resume), None).await {
            Ok(execution) => execution,
            Err(error) => return self.refused(app, run, error, out).await,
        };
        let display = Display::choose(self.json, self.quiet, out);
        let again = setup::again(&self.config, &self.changes);
        let exit = settle(app, execution, &known, display, Tasks::waited_for(self.wait), &again, out).await?;
        let has_drifted = exit == Exit::Pending && self.has_drifted(app, run, &decided).await?;
        Ok(if has_drifted { Exit::Drifted } else { exit })
    }

    /// Whether a call that was decided about just now is asked about again, because something became different.
    async fn has_drifted(&self, app: &App, run: &RunId, decided: &[CallId]) -> Result<bool, CliError> {
        let waiting = of_run(app, run).await?;
        Ok(waiting.iter().any(|waiting| match &waiting.debt {
            Debt::Approval { call_id, differences, .. } => decided.contains(call_id) && !differences.is_empty(),
            Debt::ExternalResult { .. } | Debt::Question { .. } | Debt::Input { .. } | Debt::Task { .. } => false,
        }))
    }

    /// Refused answers do a run no harm. What waits instead of what was decided about is shown at once; with JSON the last
    /// line says how the run stands.
    async fn refused(&self, app: &App, run: &RunId, error: RunnerError, out: &mut Output) -> Result<Exit, CliError> {
        let drifted = drifted(&error);
        let exit = if drifted.is_empty() { Exit::Code(error.code().exit_code()) } else { Exit::Drifted };
        let is_unknown = matches!(&error, RunnerError::Refused(refusals)
            if refusals.iter().any(|refusal| matches!(refusal, Refusal::UnknownCall { .. })));
        let mut error = CliError::from(error);
        if is_unknown {
            error = error.with_remedy(format!("calls of this run that wait: {}", that_wait(app, run).await?));
        }
        report::error(&error, out);
        if self.json {
            out.json(&ResultLine::refused(&app.runner.report(run).await?, &error));
        } else {
            let again = setup::again(&self.config, &self.changes);
            for waiting in of_run(app, run).await?.iter().filter(|waiting| drifted.contains(waiting.call())) {
                whole(waiting, &again, out).into_iter().for_each(|line| out.line(line));
            }
        }
        Ok(exit)
    }
}

/// The calls at which something else waits than what was decided about.
fn drifted(error: &RunnerError) -> Vec<CallId> {
    let RunnerError::Refused(refusals) = error else { return Vec::new() };
    let drifted = refusals.iter().filter_map(|refusal| match refusal {
        Refusal::Drifted { call_id } => Some(call_id.clone()),
        Refusal::UnknownCall { .. }
        | Refusal::AlreadySettled { .. }
        | Refusal::WrongKind { .. }
        | Refusal::Twice { .. }
        | Refusal::TooLate { .. }
        | Refusal::NotLater { .. }
        | Refusal::NoDeadline { .. }
        | Refusal::Past { .. }
        | Refusal::Incomplete { .. }
        | Refusal::Invalid { .. }
        | Refusal::Stale { .. }
        | Refusal::Over { .. }
        | Refusal::Oversized { .. }
        | Refusal::EmptyMessage => None,
    });
    drifted.collect()
}
