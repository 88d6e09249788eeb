//! `toolgate runs show`: a run in one picture.

use clap::Args;

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::find::find;
use crate::cli::output::Output;
use crate::cli::setup::{self, Changes, ConfigFlag};
use crate::cli::view::{Look, Picture, what_is_owed};

/// Show a run: its turns, its calls, what it used, and what it waits for
#[derive(Args, Debug)]
pub(super) struct Show {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints the report as JSON: status, output, pending, messages, budget
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let shown = self.show(&app, out).await;
        crate::cli::close(app, out).await;
        shown.map(|()| Exit::Done)
    }

    async fn show(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let run = find(app, &self.run).await?;
        let report = app.runner.report(&run).await?;
        if self.json {
            out.pretty(&report);
            return Ok(());
        }
        let journal = app.runner.journal(&run).await?;
        let look = Look { paint: out.paint(), width: out.width() };
        let lines = Picture::of(&journal).map(|picture| picture.draw(&report, look)).unwrap_or_default();
        lines.iter().for_each(|line| out.line(line));
        if !report.pending.is_empty() {
            let again = setup::again(&self.config, &Changes::default());
            what_is_owed(&run, &report.pending, &again, look).iter().for_each(|line| out.line(line));
        }
        Ok(())
    }
}
