//! `toolgate runs explain`: why each tool was available, and why each call ran or did not.

use clap::Args;

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::view::{DisplaySettings, Explanation};
use crate::ports::GrantFilter;

/// Explain a run: why each tool was available or withheld, and why each call ran or did not
#[derive(Args, Debug)]
pub(super) struct Explain {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints one JSON object: turns with their tools and calls, and what happened to each
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let explained = self.explain(&app, out).await;
        setup::close(app, out).await;
        explained.map(|()| Exit::Done)
    }

    async fn explain(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let run = find(app, &self.run).await?;
        let (journal, report) = (app.runner.journal(&run).await?, app.runner.report(&run).await?);
        let grants = app.runner.grants(&GrantFilter { ended: true, ..GrantFilter::default() }).await?;
        let grants = grants.into_iter().map(|grant| (grant.id.clone(), grant)).collect();
        let Some(explanation) = Explanation::from_journal(&journal, &report, &grants) else { return Ok(()) };
        if self.json {
            out.pretty(&explanation);
            return Ok(());
        }
        let look = DisplaySettings { paint: out.paint(), width: out.width() };
        explanation.draw(look).into_iter().for_each(|line| out.line(line));
        Ok(())
    }
}
