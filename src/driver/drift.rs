//! Drift check: compares a call with what was approved, immediately before dispatch. Applies to calls that are sent,
//! calls that are sent again, and approved calls that are handed to the caller or the user.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use toolgate_core::id::{CallId, GrantId, ServerId};
use toolgate_core::run::{Call, CallAuthorization, Event, Run};
use toolgate_core::tool::{Difference, Tool, Toolset};

use super::{DriveError, Driver, Journal, Progress};

/// The maximum age of a server's tool list when a call is authorized by a grant.
const GRANT_CONFIRMED: Duration = Duration::from_secs(60);

/// The result of the comparison.
pub(super) enum DriftCheck {
    /// The calls are unchanged.
    Same,
    /// A call changed, or another writer appended to the run: compute the next step again.
    MovedOn,
}

impl Driver<'_> {
    /// Records the differences of these calls since they were authorized. Changed calls are checked again before any
    /// call of the tier is sent.
    ///
    /// The events are durable on return: a tool that keeps changing does not hold back earlier events.
    pub(super) async fn record_drift(
        &self,
        journal: &mut Journal,
        live: &Toolset,
        calls: &[CallId],
    ) -> Result<DriftCheck, DriveError> {
        let found: Vec<(&CallId, Arc<Tool>)> = calls
            .iter()
            .filter_map(|id| {
                let tool = journal.run().call(id)?.tool.as_ref()?;
                // A call whose tool is gone is not sent, and the model reads the reason.
                Some((id, live.by_origin(&tool.origin)?.clone()))
            })
            .collect();
        // The definition that the model saw is in the journal, and may no longer be the one that a call reaches
        // (decisions 0004, 0010).
        let drifted = self.drifted(journal.run(), &found).await;
        if drifted.is_empty() {
            return Ok(DriftCheck::Same);
        }
        journal.stage_all(drifted)?;
        // Whether the commit succeeded or another writer was first: the run determines the next step.
        let (Progress::Committed | Progress::CaughtUp) = journal.commit().await?;
        Ok(DriftCheck::MovedOn)
    }

    /// Refreshes the tool lists of the servers of approved calls, if they are older than the approval: a server may
    /// change a definition without an announcement.
    pub(super) async fn confirm_tools(&self, journal: &Journal, calls: &[CallId]) {
        let (run, now) = (journal.run(), self.ports.clock.now());
        let mut servers: BTreeMap<ServerId, Option<Duration>> = BTreeMap::new();
        for call in calls.iter().filter_map(|id| run.call(id)) {
            let Some(server) = call.tool.as_ref().and_then(|tool| tool.server()) else { continue };
            let approved = match &call.authorization {
                _ if call.task().is_some() => continue,
                Some(CallAuthorization::HumanApproval { .. }) => Some(
                    call.approved_at
                        .map_or(Duration::ZERO, |at| Duration::try_from(now.duration_since(at)).unwrap_or_default()),
                ),
                Some(CallAuthorization::Grant(_)) => Some(GRANT_CONFIRMED),
                Some(CallAuthorization::Policy) | None => None,
            };
            let newest = servers.entry(server.clone()).or_default();
            *newest = newest.take().into_iter().chain(approved).min();
        }
        let (ports, context) = (self.ports, run.execution_context());
        let confirmed = servers.into_iter().map(|server| {
            let context = &context;
            async move {
                let asked = std::slice::from_ref(&server);
                self.waits.measure(ports, &server.0, ports.servers.confirm(asked, context), |()| None).await;
            }
        });
        join_all(confirmed).await;
    }

    /// The differences of calls, given their current tools, as events.
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
                differences.push(Difference::new("grant", "in force", "no longer in force"));
            }
            // The next check has to judge the same tool as this one, in everything that a policy reads.
            let changed = call.tool.as_ref().is_none_or(|tool| tool != live).then(|| live.clone());
            (!differences.is_empty()).then(|| Event::CallDrifted { call: id.clone(), differences, tool: changed })
        });
        drifted.collect()
    }

    /// The grants that no longer hold. A grant that cannot be looked up does not hold.
    pub(super) async fn ended_grants(&self, grants: BTreeSet<GrantId>) -> BTreeSet<GrantId> {
        if grants.is_empty() {
            return grants;
        }
        let grants: Vec<GrantId> = grants.into_iter().collect();
        let hold = self.ports.approvals.hold(&grants, self.ports.clock.now()).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to query approval cache; granted calls require approval");
            Vec::new()
        });
        let holds = hold.into_iter().chain(std::iter::repeat(false));
        grants.into_iter().zip(holds).filter(|(_, holds)| !holds).map(|(grant, _)| grant).collect()
    }
}

/// The grant that authorizes a call, if one does. A message to a running task at a server needs no grant any more.
fn resting_on(call: &Call) -> Option<&GrantId> {
    match &call.authorization {
        _ if call.task().is_some() => None,
        Some(CallAuthorization::Grant(grant)) => Some(grant),
        Some(CallAuthorization::Policy | CallAuthorization::HumanApproval { .. }) | None => None,
    }
}
