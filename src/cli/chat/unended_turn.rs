//! Last turn of a conversation that has not ended: what it waits for, and the keys that continue it.

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::view::{can_continue_with_message, continuing_keys};
use crate::core::id::RunId;
use crate::core::run::{PendingItem, Status};

pub(super) struct UnendedTurn {
    pub(super) run: RunId,
    /// The policy that the turn keeps: that of its first message. `None` without its agent.
    policy: Option<String>,
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
        let state = app.runner.load(run).await?;
        let spec = &state.started().spec;
        let policy = app.runner.agent(&spec.agent).ok().map(|agent| agent.policy_of(spec).name.clone());
        let is_executed = report.status == Status::Running && !app.runner.is_orphaned(run).await?;
        let pending = if is_executed { Vec::new() } else { state.pending_items() };
        Ok(Some(Self { run: run.clone(), policy, pending, is_executed }))
    }

    /// The policy that it keeps, if that is not this one.
    pub(super) fn policy_other_than(&self, chosen: &str) -> Option<&str> {
        self.policy.as_deref().filter(|policy| *policy != chosen)
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
