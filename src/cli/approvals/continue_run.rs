//! Common last step of `approve`, `deny` and `answer`: stores the decision and resumes the run.

use clap::Args;

use super::calls::that_wait;
use super::show::whole;
use crate::app::App;
use crate::cli::answers::who;
use crate::cli::drive_to_idle::{ResultLine, settle};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::follow::Display;
use crate::cli::follow_options::Tasks;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::text::list;
use crate::cli::{refusal, report};
use crate::core::id::RunId;
use crate::core::run::{Input, Resume, ResumeError, Status};
use crate::runner::{Report, RunnerError};

/// Flags for how the run resumes and who decides.
#[derive(Args, Debug)]
pub(super) struct ContinueOptions {
    #[command(flatten)]
    config: ConfigFlag,

    /// Who decides, stored in the journal [default: the user of this terminal]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Waits for calls that run as tasks at their servers
    #[arg(long)]
    wait: bool,

    /// Only stores it; the run resumes in the process that executes it, or with the next `toolgate runs recover`
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,

    /// Prints one lifecycle event per line as JSON, and the result as the last line
    #[arg(long)]
    pub(super) json: bool,

    /// Prints nothing but the answer and what is pending
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    changes: ConfigOverrides,
}

impl ContinueOptions {
    /// The name of the person who decides.
    pub(super) fn by(&self) -> String {
        self.by.clone().unwrap_or_else(who)
    }

    /// Opens the application with the settings of this command.
    pub(super) async fn open(&self) -> Result<App, CliError> {
        let mut settings = setup::settings(&self.config)?;
        self.changes.apply(&mut settings, None)?;
        setup::open(settings).await
    }

    /// Closes the application.
    pub(super) async fn close(ended: Result<Exit, CliError>, app: App, out: &mut Output) -> Result<Exit, CliError> {
        setup::close_after(&ended, app, out).await;
        ended
    }

    /// Sends the decision to the run and executes the run, unless `--no-wait` leaves that to another process.
    pub(super) async fn give(
        &self,
        app: &App,
        run: &RunId,
        resume: Resume,
        out: &mut Output,
    ) -> Result<Exit, CliError> {
        let decided = refusal::decided(&resume);
        let known = app.runner.journal(run).await?;
        if self.no_wait {
            return match app.operator().record(run, resume).await {
                Ok(report) => self.stored(app, &report, out).await,
                Err(error) => self.refused(app, run, error, out).await,
            };
        }
        let execution = match app.operator().resume(run, Input::Resume(resume), None).await {
            Ok(execution) => execution,
            Err(error) => return self.refused(app, run, error, out).await,
        };
        let display = Display::choose(self.json, self.quiet, out);
        let again = setup::again(&self.config, &self.changes);
        let exit = settle(app, execution, &known, display, Tasks::waited_for(self.wait).into(), &again, out).await?;
        refusal::exit_after(app, run, exit, &decided).await
    }

    /// Reports that the decision was only stored, and what is still pending: no process may be executing the run.
    async fn stored(&self, app: &App, report: &Report, out: &mut Output) -> Result<Exit, CliError> {
        let (run, pending) = (&report.run_id, app.runner.load(&report.run_id).await?.pending_items());
        if self.json {
            out.json(&ResultLine::stored(report, &pending));
            return Ok(Exit::Done);
        }
        out.line(match report.status == Status::Running {
            true => format!(
                "{run} stored; the run resumes in the process that executes it, or with `toolgate runs recover`"
            ),
            false => format!("{run} {}", report.status.as_str()),
        });
        if !pending.is_empty() {
            let items = pending.iter().map(|item| item.call_id().map_or(item.kind(), |call| call.as_str()).to_owned());
            out.line(format!("{run} still waits for {}", list(items)));
        }
        Ok(Exit::Done)
    }

    /// Reports a rejected answer, which leaves the run unchanged. Text output shows what is pending now; with JSON the
    /// last line is the state of the run.
    async fn refused(&self, app: &App, run: &RunId, error: RunnerError, out: &mut Output) -> Result<Exit, CliError> {
        let (drifted, exit) = (refusal::drifted(&error), refusal::exit(&error));
        let is_unknown = matches!(&error, RunnerError::Refused(refusals)
            if refusals.iter().any(|refusal| matches!(refusal, ResumeError::UnknownCall { .. })));
        let mut error = refusal::with_journal_details(error, &app.runner.journal(run).await?);
        if is_unknown {
            error = error.with_remedy(format!("pending calls of this run: {}", that_wait(app, run).await?));
        }
        report::error(&error, out);
        if self.json {
            out.json(&ResultLine::refused(&app.runner.report(run).await?, &error));
        } else {
            let again = setup::again(&self.config, &self.changes);
            for waiting in
                app.operator().inbox_of(run).await?.waiting.iter().filter(|waiting| drifted.contains(waiting.call()))
            {
                whole(waiting, &again, out).into_iter().for_each(|line| out.line(line));
            }
        }
        Ok(exit)
    }
}
