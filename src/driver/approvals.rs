//! Step: query the approval cache, in one batch, for grants that cover the guarded tools.

use std::sync::Arc;

use toolgate_core::run::Event;
use toolgate_core::tool::ToolName;
use toolgate_ports::{GrantContext, GuardedTool};

use super::{DriveError, Driver, Journal};

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
        let guarded = guarded.iter().filter_map(|name| tools.get(name.as_str()));
        let guarded = guarded.map(|tool| GuardedTool { tool: tool.name.clone(), definition: tool.hash.clone() });
        let guarded: Vec<GuardedTool> = guarded.collect();
        let started = run.started();
        let context = GrantContext {
            tenant: started.tenant.clone(),
            session: started.session.clone(),
            agent: started.spec.agent.clone(),
            principal: started.spec.principal.clone(),
        };
        let now = self.ports.clock.now();
        // If the cache fails, there is no grant and the call requires approval.
        let granted = self.ports.approvals.granted(&context, &guarded, now).await.unwrap_or_else(|error| {
            let run = journal.id();
            tracing::warn!(%run, %error, "failed to query approval cache; guarded calls require approval");
            Vec::new()
        });
        journal.stage(Event::ApprovalsResolved { granted: Arc::new(granted) })
    }
}
