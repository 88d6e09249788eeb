//! `toolgate approvals deny`: denies calls; the model receives the reason.

use clap::Args;

use super::calls::CallSelection;
use super::continue_run::ContinueOptions;
use crate::app::App;
use crate::cli::answers::denial;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::core::run::Decision;

/// Deny calls and resume the run
#[derive(Args, Debug)]
pub(super) struct Deny {
    #[command(flatten)]
    calls: CallSelection,

    /// Reason, sent to the model
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    #[command(flatten)]
    on: ContinueOptions,
}

impl Deny {
    /// Whether the last output line must be a result, even after an error.
    pub(super) fn ends_with_result(&self) -> bool {
        self.on.json
    }

    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        self.calls.check()?;
        let app = self.on.open().await?;
        let ended = self.decide(&app, out).await;
        ContinueOptions::close(ended, app, out).await
    }

    async fn decide(&self, app: &App, out: &mut Output) -> Result<Exit, CliError> {
        let run = find(app, &self.calls.run).await?;
        let chosen = self.calls.choose(app, &run).await?;
        let decision = Decision { by: self.on.by(), ..denial(self.reason.clone()) };
        self.on.give(app, &run, chosen.decided(&decision), out).await
    }
}
