//! Step: ask the approval cache, in one batch, which guarded tools are granted.

use super::{DriveError, Driver, Journal};
use crate::core::run::Event;
use crate::core::tool::ToolName;
use crate::ports::ApprovalKey;

impl Driver<'_> {
    pub(super) async fn resolve_approvals(
        &mut self,
        journal: &mut Journal,
        guarded: &[ToolName],
    ) -> Result<(), DriveError> {
        if self.refresh_tools(journal).await? {
            return Ok(());
        }
        let run = journal.run();
        let Some(tools) = run.tools() else { return Ok(()) };
        let keys: Vec<ApprovalKey> = guarded
            .iter()
            .filter_map(|name| tools.get(name.as_str()))
            .map(|tool| ApprovalKey {
                session: run.started().session.clone(),
                tool: tool.name.clone(),
                hash: tool.hash.clone(),
            })
            .collect();
        // A cache that does not answer grants nothing: a person is asked instead.
        let answers = self.ports.approvals.granted(&keys).await.unwrap_or_else(|error| {
            tracing::warn!(run = %journal.id(), %error, "the approval cache did not answer; nothing is granted");
            Vec::new()
        });
        let granted = keys.into_iter().zip(answers).filter(|(_, granted)| *granted).map(|(key, _)| key.tool);
        let granted = granted.collect();
        journal.stage(Event::ApprovalsResolved { granted })
    }
}
