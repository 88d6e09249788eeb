//! Step: find out which tools there are.

use std::sync::Arc;

use super::interrupt::Waited;
use super::{DriveError, Driver, Journal};
use crate::core::run::Event;
use crate::core::tool::Toolset;

impl Driver<'_> {
    pub(super) async fn list_tools(&mut self, journal: &mut Journal) -> Result<(), DriveError> {
        // The first fact is durable before anything runs, also before a server is started.
        journal.commit().await?;
        let Waited::Done(toolset) = self.live_tools(journal).await else { return journal.catch_up().await };
        if journal.run().is_between_turns() { journal.stage(Event::ToolsListed { toolset }) } else { Ok(()) }
    }

    /// Between turns, a toolset that changed since it was last shown to the model is shown anew. True if the run moved
    /// on, so that it has to be asked anew what is next. Once in a turn: what a server changes whenever it is looked at is
    /// found out when a call is sent.
    pub(super) async fn refresh_tools(&mut self, journal: &mut Journal) -> Result<bool, DriveError> {
        let Waited::Done(live) = self.live_tools(journal).await else {
            journal.catch_up().await?;
            return Ok(true);
        };
        let turn = journal.run().budget().iterations;
        let is_shown = |shown: &Arc<Toolset>| Arc::ptr_eq(shown, &live) || shown.offers_the_same_as(&live);
        if self.relisted == Some(turn)
            || !journal.run().is_between_turns()
            || journal.run().tools().is_some_and(is_shown)
        {
            return Ok(false);
        }
        journal.stage(Event::ToolsListed { toolset: live })?;
        self.relisted = Some(turn);
        Ok(true)
    }

    /// What servers and caller offer now; asked anew when a server may have come to offer something else. A server that starts slowly must not keep the run from
    /// being ended.
    pub(super) async fn live_tools(&mut self, journal: &Journal) -> Waited<Arc<Toolset>> {
        let generation = self.ports.servers.generation(&journal.run().started().spec.servers);
        if let Some((found_at, live)) = &self.live
            && *found_at == generation
        {
            let live = self.with_builtins(journal.run(), live.clone());
            self.live = Some((generation, live.clone()));
            return Waited::Done(live);
        }
        match self.unless_ended(journal, self.find_tools(journal)).await {
            Waited::Done(found) => {
                let live = self.with_builtins(journal.run(), Arc::new(found));
                // What changed while they were listed is found out the next time.
                self.live = Some((generation, live.clone()));
                Waited::Done(live)
            }
            Waited::Interrupted => Waited::Interrupted,
        }
    }

    async fn find_tools(&self, journal: &Journal) -> Toolset {
        let spec = &journal.run().started().spec;
        let context = journal.run().listing_context();
        let offers = match spec.servers.is_empty() {
            true => Vec::new(),
            false => self.ports.servers.list(&spec.servers, &context).await,
        };
        let rules = self.agent.toolset_rules(spec, journal.run().pins());
        let inputs = &self.ports.inputs;
        Toolset::assemble(&spec.external_tools, &offers, &rules).without(|tool| inputs.accepts(tool).err())
    }
}
