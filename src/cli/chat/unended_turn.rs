//! Last turn of a conversation that has not ended: what it waits for, and the keys that continue it.

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::view::{can_continue_with_message, continuing_keys};
use crate::core::id::RunId;
use crate::core::run::{PendingItem, Status};

pub(super) struct UnendedTurn {
    pub(super) run: RunId,
    /// What waits for an answer, if no process executes the run. A run with an approved call is not pending, and other calls
    /// of it may wait.
    pub(super) pending: Vec<PendingItem>,
    is_executed: bool,
}

impl UnendedTurn {
    /// `None` if the run ended.
    pub(super) async fn of(app: &App, run: &RunId) -> Result<Option<Self>, CliError> {
        let report = app.runner.report(run).await?;
        if report.status.is_ended() {
            return Ok(None);
        }
        let is_executed = report.status == Status::Running && !app.runner.is_orphaned(run).await?;
        let pending = if is_executed { Vec::new() } else { app.runner.load(run).await?.pending_items() };
        Ok(Some(Self { run: run.clone(), pending, is_executed }))
    }

    /// Whether a message can continue it.
    pub(super) fn takes_message(&self) -> bool {
        can_continue_with_message(&self.pending)
    }

    pub(super) fn continuing_keys(&self) -> &'static str {
        match self.is_executed {
            true => {
                "another process executes it, or died just now: press Enter to follow it, or send it a message; /cancel cancels it"
            }
            false => continuing_keys(&self.pending),
        }
    }
}
