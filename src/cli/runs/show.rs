//! `toolgate runs show`: the summary of a run.

use clap::Args;
use serde::Serialize;

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::view::{DisplaySettings, RunSummary, feedback_lines, pending_lines};
use crate::core::tool::escape_untrusted;
use crate::ports::Feedback;
use crate::runner::Report;

/// Show a run: its turns, its calls, what it used, and what it waits for
#[derive(Args, Debug)]
pub(super) struct Show {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints the report as JSON: status, output, pending, messages, budget, feedback
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ReportJson<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Why the run cannot resume with this configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    feedback: Vec<Feedback>,
}

impl Show {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let shown = self.show(&app, out).await;
        setup::close(app, out).await;
        shown.map(|()| Exit::Done)
    }

    async fn show(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let run = find(app, &self.run).await?;
        let report = app.runner.report(&run).await?;
        let blocked = app.runner.blocked(&run, &app.runner.load(&run).await?).map(|error| error.to_string());
        let feedback = app.runner.feedback(&run).await?;
        if self.json {
            out.pretty(&ReportJson { report: &report, blocked, feedback });
            return Ok(());
        }
        let journal = app.runner.journal(&run).await?;
        let look = DisplaySettings { paint: out.paint(), width: out.width() };
        let lines = RunSummary::from_journal(&journal).map(|picture| picture.draw(&report, look)).unwrap_or_default();
        lines.iter().for_each(|line| out.line(line));
        if !feedback.is_empty() {
            out.line(look.paint.bold("feedback"));
            feedback_lines(&feedback, look).iter().for_each(|line| out.line(line));
        }
        if let Some(blocked) = blocked {
            let remedy = format!("configure it again, or end the run with `toolgate runs cancel {run}`");
            out.line(look.paint.yellow(format!("blocked: {}; {remedy}", escape_untrusted(&blocked))));
        }
        if !report.pending.is_empty() {
            let again = setup::again(&self.config, &ConfigOverrides::default());
            pending_lines(&run, &report.pending, &again, look).iter().for_each(|line| out.line(line));
        }
        Ok(())
    }
}
