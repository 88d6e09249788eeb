//! `toolgate runs cancel`: cancels a run, whichever process executes it.

use clap::Args;

use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag};

/// Cancel a run, whichever process executes it
#[derive(Args, Debug)]
pub(super) struct Cancel {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// The reason, for the journal
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Cancel {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let cancelled = async {
            let run = find(&app, &self.run).await?;
            let report = app.runner.cancel(&run, self.reason.clone(), None).await?;
            // Calls are undone first. If this process cannot execute the run, another one does.
            let undoes = report.compensation.is_some() && !report.status.is_ended();
            Ok::<_, CliError>(match undoes {
                true => app.runner.resume_or_follow(&run).await?.until_idle().await?,
                false => report,
            })
        };
        let cancelled = cancelled.await;
        setup::close(app, out).await;
        let report = cancelled?;
        out.line(format!("{} {}", report.run_id, report.status.as_str()));
        Ok(Exit::Done)
    }
}
