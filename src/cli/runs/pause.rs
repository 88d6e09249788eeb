//! `toolgate runs pause`: pauses a run, whichever process executes it.

use clap::Args;

use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::core::run::{Channel, Status};

/// Pause a run, whichever process executes it: it stops after its step in progress, until `toolgate resume --continue`
#[derive(Args, Debug)]
pub(super) struct Pause {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// The reason, which the pending item shows
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Pause {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let paused = async {
            let run = find(&app, &self.run).await?;
            Ok::<_, CliError>(app.runner.pause(&run, self.reason.clone(), who(), Channel::CommandLine, None).await?)
        };
        let paused = paused.await;
        setup::close(app, out).await;
        let report = paused?;
        let again = setup::again(&self.config, &ConfigOverrides::default());
        let is_paused = report.status == Status::Pending;
        let state = if is_paused { "paused" } else { "is paused once its step in progress has settled" };
        out.line(format!("{} {state}", report.run_id));
        out.note(format!("resume it with:\n  {}", again.command(&["resume", report.run_id.as_str(), "--continue"])));
        Ok(Exit::Done)
    }
}
