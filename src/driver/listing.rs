//! Step: find out which tools there are.

use std::sync::Arc;

use super::{DriveError, Driver, Journal};
use crate::core::run::Event;
use crate::core::tool::Toolset;

impl Driver<'_> {
    pub(super) async fn list_tools(&mut self, journal: &mut Journal) -> Result<(), DriveError> {
        // The first fact is durable before anything runs, also before a server is started.
        journal.commit().await?;
        let toolset = self.live_tools(journal).await;
        if journal.run().is_between_turns() { journal.stage(Event::ToolsListed { toolset }) } else { Ok(()) }
    }

    /// Between turns, a toolset that changed since it was last shown to the model is shown anew.
    pub(super) async fn refresh_tools(&mut self, journal: &mut Journal) -> Result<bool, DriveError> {
        let live = self.live_tools(journal).await;
        let is_shown = |shown: &Arc<Toolset>| Arc::ptr_eq(shown, &live) || **shown == *live;
        if !journal.run().is_between_turns() || journal.run().tools().is_some_and(is_shown) {
            return Ok(false);
        }
        journal.stage(Event::ToolsListed { toolset: live })?;
        Ok(true)
    }

    /// What servers and caller offer now; asked once an execution.
    pub(super) async fn live_tools(&mut self, journal: &Journal) -> Arc<Toolset> {
        if let Some(live) = &self.live {
            return live.clone();
        }
        let spec = &journal.run().started().spec;
        let context = journal.run().execution_context();
        let offers = match spec.servers.is_empty() {
            true => Vec::new(),
            false => self.ports.servers.list(&spec.servers, &context).await,
        };
        let rules = self.agent.toolset_rules(spec);
        let inputs = &self.ports.inputs;
        let toolset =
            Toolset::assemble(&spec.external_tools, &offers, &rules).without(|tool| inputs.accepts(tool).err());
        self.live.insert(Arc::new(toolset)).clone()
    }
}
