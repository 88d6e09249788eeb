//! Right before a call leaves: is what would run what it was cleared for? Asked of calls that are sent, of calls that are
//! sent again, and of approved calls that are handed to whoever answers them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{DriveError, Driver, Journal, Progress};
use crate::core::id::{CallId, GrantId, ServerId};
use crate::core::run::{Call, Clearance, Event, Run};
use crate::core::tool::{Difference, Tool, Toolset};

/// How old the list of a server may be when a call rests on a grant.
const GRANT_CONFIRMED: Duration = Duration::from_secs(60);

/// What came of the comparison.
pub(super) enum Compared {
    /// The calls are what they were cleared for.
    Same,
    /// Something is different, or somebody else wrote to the run: ask it anew what is next.
    MovedOn,
}

impl Driver<'_> {
    /// Records what has become different about these calls since they were cleared. Those are checked again before any of
    /// the tier is sent.
    ///
    /// The facts are durable when it returns: what happened before is not held back by a tool that keeps changing.
    pub(super) async fn record_drift(
        &self,
        journal: &mut Journal,
        live: &Toolset,
        calls: &[CallId],
    ) -> Result<Compared, DriveError> {
        let found: Vec<(&CallId, Arc<Tool>)> = calls
            .iter()
            .filter_map(|id| {
                let tool = journal.run().call(id)?.tool.as_ref()?;
                // What is gone is not sent, and its call is told so.
                Some((id, live.by_origin(&tool.origin)?.clone()))
            })
            .collect();
        let drifted = self.drifted(journal.run(), &found).await;
        if drifted.is_empty() {
            return Ok(Compared::Same);
        }
        journal.stage_all(drifted)?;
        // Whether it was written or somebody else wrote first: the run says what is next.
        let (Progress::Committed | Progress::CaughtUp) = journal.commit().await?;
        Ok(Compared::MovedOn)
    }

    /// Asks the servers of calls that were approved for their tools again, if they were asked before the approval: a server
    /// may change a definition without an announcement.
    pub(super) async fn confirm_tools(&self, journal: &Journal, calls: &[CallId]) {
        let (run, now) = (journal.run(), self.ports.clock.now());
        let mut servers: BTreeMap<ServerId, Option<Duration>> = BTreeMap::new();
        for call in calls.iter().filter_map(|id| run.call(id)) {
            let Some(server) = call.tool.as_ref().and_then(|tool| tool.server()) else { continue };
            let approved = match &call.clearance {
                _ if call.task().is_some() => continue,
                Some(Clearance::Person { .. }) => Some(
                    call.approved_at
                        .map_or(Duration::ZERO, |at| Duration::try_from(now.duration_since(at)).unwrap_or_default()),
                ),
                Some(Clearance::Grant(_)) => Some(GRANT_CONFIRMED),
                Some(Clearance::Policy) | None => None,
            };
            let newest = servers.entry(server.clone()).or_default();
            *newest = newest.take().into_iter().chain(approved).min();
        }
        if !servers.is_empty() {
            let servers: Vec<_> = servers.into_iter().collect();
            self.ports.servers.confirm(&servers, &run.listing_context()).await;
        }
    }

    /// What is different about calls, given their tools as they are now, as facts.
    pub(super) async fn drifted(&self, run: &Run, calls: &[(&CallId, Arc<Tool>)]) -> Vec<Event> {
        let open = || calls.iter().filter_map(|(id, live)| Some((*id, run.call(id)?, live)));
        let ended = self.ended_grants(open().filter_map(|(_, call, _)| resting_on(call).cloned()).collect()).await;
        let now = self.ports.clock.now();
        let mut judged = Vec::new();
        for (id, call, live) in open() {
            judged.push((id, call, live, self.judge(run, call, live).await));
        }
        let drifted = judged.into_iter().filter_map(|(id, call, live, judgement)| {
            let mut differences = run.drift(id, live, &judgement, now);
            if resting_on(call).is_some_and(|grant| ended.contains(grant)) {
                differences.push(Difference::new("standing approval", "in force", "no longer in force"));
            }
            // The check that follows has to judge what was judged here, in all that a policy looks at.
            let changed = call.tool.as_ref().is_none_or(|tool| tool != live).then(|| live.clone());
            (!differences.is_empty()).then(|| Event::CallDrifted { call: id.clone(), differences, tool: changed })
        });
        drifted.collect()
    }

    /// Those of the standing approvals that hold no longer. What cannot be looked up does not hold.
    pub(super) async fn ended_grants(&self, grants: BTreeSet<GrantId>) -> BTreeSet<GrantId> {
        if grants.is_empty() {
            return grants;
        }
        let grants: Vec<GrantId> = grants.into_iter().collect();
        let hold = self.ports.approvals.hold(&grants, self.ports.clock.now()).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the approval cache did not answer; what was granted is asked about");
            Vec::new()
        });
        let holds = hold.into_iter().chain(std::iter::repeat(false));
        grants.into_iter().zip(holds).filter(|(_, holds)| !holds).map(|(grant, _)| grant).collect()
    }
}

/// The standing approval by which a call may run, if it is one. What is told to a task at a server rests on none any more.
fn resting_on(call: &Call) -> Option<&GrantId> {
    match &call.clearance {
        _ if call.task().is_some() => None,
        Some(Clearance::Grant(grant)) => Some(grant),
        Some(Clearance::Policy | Clearance::Person { .. }) | None => None,
    }
}
