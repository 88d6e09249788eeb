//! Step: list the available tools.

use std::sync::Arc;

use futures::future::join_all;
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::ServerId;
use toolgate_core::run::{Ending, Event, Run};
use toolgate_core::tool::{Builtin, ForeignName, ServerTools, ToolFilter, Toolset, ToolsetRules};

use super::interrupt::StepOutcome;
use super::{DriveError, Driver, Journal};

impl Driver<'_> {
    pub(super) async fn list_tools(&mut self, journal: &mut Journal) -> Result<(), DriveError> {
        // The first event is durable before anything runs, including the start of a server.
        journal.commit().await?;
        let StepOutcome::Done(toolset) = self.live_tools(journal).await else { return journal.catch_up().await };
        if !journal.run().is_between_turns() {
            return Ok(());
        }
        let StepOutcome::Done(foreign) = self.unless_ended(journal, self.foreign_name(journal, &toolset)).await else {
            return journal.catch_up().await;
        };
        self.stage_waits(journal)?;
        journal.stage(Event::ToolsListed { toolset })?;
        let Some(ForeignName { list, index, name }) = foreign else { return Ok(()) };
        let message = format!(
            "agent `{}` has no tool `{name}` (`/tools/{list}/{index}`); a run may narrow its agent's tools, never widen them",
            self.agent.name
        );
        journal.end(Ending::Failed { error: Failure::new(ErrorCode::Validation, message) })
    }

    /// The first name in the run's filter that no tool of its agent has, when the tools are listed for the first time.
    /// While a list is not complete, no name is judged.
    async fn foreign_name(&self, journal: &Journal, listed: &Toolset) -> Option<ForeignName> {
        let filter = &journal.run().started().spec.tools;
        if journal.run().tools().is_some() || filter.foreign_name(|name| listed.knows(name)).is_none() {
            return None;
        }
        let whole = self.find_tools(journal, ToolFilter::default()).await;
        let is_complete = whole.left_out().iter().all(|left| left.tool.is_some());
        filter.foreign_name(|name| !is_complete || whole.knows(name) || Builtin::reserves(name))
    }

    /// Between turns, lists a changed toolset to the model again, and records changes of authorization. True if the next step
    /// has to be computed again. Once a turn: a server whose tools change on every listing is caught when a call is sent.
    pub(super) async fn refresh_tools(&mut self, journal: &mut Journal) -> Result<bool, DriveError> {
        let StepOutcome::Done(live) = self.live_tools(journal).await else {
            journal.catch_up().await?;
            return Ok(true);
        };
        self.stage_waits(journal)?;
        let turn = journal.run().budget().iterations;
        let is_recorded = |shown: &Arc<Toolset>| {
            Arc::ptr_eq(shown, &live)
                || (shown.offers_the_same_as(&live) && live.authorization_changes(Some(shown)).next().is_none())
        };
        if self.relisted == Some(turn)
            || !journal.run().is_between_turns()
            || journal.run().tools().is_some_and(is_recorded)
        {
            return Ok(false);
        }
        journal.stage(Event::ToolsListed { toolset: live })?;
        self.relisted = Some(turn);
        Ok(true)
    }

    /// The current tools of servers and caller; listed again when a server may have changed its tools. A slow server
    /// start must not keep the run from being ended.
    pub(super) async fn live_tools(&mut self, journal: &Journal) -> StepOutcome<Arc<Toolset>> {
        let generation = self.ports.servers.generation(&journal.run().started().spec.servers);
        if let Some((found_at, live)) = &self.live
            && *found_at == generation
        {
            let live = self.with_builtins(journal.run(), live.clone());
            self.live = Some((generation, live.clone()));
            return StepOutcome::Done(live);
        }
        match self.unless_ended(journal, self.find_tools(journal, journal.run().started().spec.tools.clone())).await {
            StepOutcome::Done(found) => {
                let live = self.with_builtins(journal.run(), found);
                // A change during the listing is found the next time.
                self.live = Some((generation, live.clone()));
                StepOutcome::Done(live)
            }
            StepOutcome::Interrupted => StepOutcome::Interrupted,
        }
    }

    /// The tools of a server. Each server is listed by a request of its own, which has its own span.
    async fn listed(&self, run: &Run, server: &ServerId) -> Vec<ServerTools> {
        let (ports, context) = (self.ports, run.listing_context(server));
        let listed = ports.servers.list(std::slice::from_ref(server), &context);
        self.waits.measure(ports, server, listed, |offers| offers.iter().find_map(ServerTools::failure)).await
    }

    /// The tools of the agent that pass the filter.
    async fn find_tools(&self, journal: &Journal, filter: ToolFilter) -> Arc<Toolset> {
        let run = journal.run();
        let spec = &run.started().spec;
        let offers = join_all(spec.servers.iter().map(|server| self.listed(run, server))).await;
        let offers = offers.into_iter().flatten().collect();
        let filters = vec![self.agent.tools.clone(), filter];
        let rules = ToolsetRules { filters, ..self.agent.toolset_rules(spec, run.pins()) };
        let tools = (spec.external_tools.as_slice(), offers);
        self.ports.toolsets.toolset(self.agent, &spec.model, tools, rules, self.ports.inputs.as_ref())
    }
}
