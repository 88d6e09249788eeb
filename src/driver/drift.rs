//! Right before calls are sent: is what would run what they were cleared for?

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{DriveError, Driver, Journal};
use crate::core::id::{CallId, GrantId};
use crate::core::run::{Clearance, Event, Run};
use crate::core::tool::{Difference, Tool, Toolset};

impl Driver<'_> {
    /// Stages what has become different about these calls since they were cleared. True if anything has: those calls are
    /// checked again before any of the tier is sent.
    pub(super) async fn stage_drift(
        &self,
        journal: &mut Journal,
        live: &Toolset,
        calls: &[CallId],
    ) -> Result<bool, DriveError> {
        let ended = self.ended_grants(journal.run(), calls).await;
        let now = self.ports.clock.now();
        let mut drifted = Vec::new();
        for id in calls {
            let Some(call) = journal.run().call(id) else { continue };
            let Some(tool) = &call.tool else { continue };
            // What is gone is not sent, and its call is told so.
            let Some(as_it_is) = live.iter().find(|live| live.origin == tool.origin) else { continue };
            let judged = self.judge(journal.run(), call, as_it_is);
            let mut differences = journal.run().drift(id, as_it_is, &judged, now);
            if let Some(Clearance::Grant(grant)) = &call.clearance
                && ended.contains(grant)
            {
                differences.push(Difference::new("standing approval", "in force", "no longer in force"));
            }
            if !differences.is_empty() {
                let changed: Option<Arc<Tool>> = (as_it_is.hash != tool.hash).then(|| as_it_is.clone());
                drifted.push(Event::CallDrifted { call: id.clone(), differences, tool: changed });
            }
        }
        let any = !drifted.is_empty();
        journal.stage_all(drifted)?;
        Ok(any)
    }

    /// The standing approvals, of those that unsent calls rest on, that hold no longer. What cannot be looked up does not
    /// hold.
    async fn ended_grants(&self, run: &Run, calls: &[CallId]) -> BTreeSet<GrantId> {
        let unsent = calls.iter().filter_map(|id| run.call(id)).filter(|call| !call.sent);
        let grants = unsent.filter_map(|call| match &call.clearance {
            Some(Clearance::Grant(grant)) => Some(grant.clone()),
            Some(Clearance::Policy | Clearance::Person { .. }) | None => None,
        });
        let grants: Vec<GrantId> = grants.collect::<BTreeSet<_>>().into_iter().collect();
        if grants.is_empty() {
            return BTreeSet::new();
        }
        let hold = self.ports.approvals.hold(&grants, self.ports.clock.now()).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the approval cache did not answer; what was granted is asked about");
            Vec::new()
        });
        let holds = hold.into_iter().chain(std::iter::repeat(false));
        grants.into_iter().zip(holds).filter(|(_, holds)| !holds).map(|(grant, _)| grant).collect()
    }
}
