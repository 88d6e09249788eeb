//! Projections of the runs that a tenant stream follows: the events that a fact of the log yields, projected from the
//! journal of its run.
//!
//! A projection folds the journal from its first entry. The projections of running runs are kept for their next facts, as
//! long as all of them together have few facts: a stream of a tenant with many runs needs bounded memory, and folds the
//! journals of the others again.

use std::collections::VecDeque;

use toolgate_core::id::RunId;
use toolgate_core::lifecycle::{Content, Lifecycle, LifecycleEvent};
use toolgate_core::run::{JournalEntry, PendingItem, Status};
use toolgate_ports::LoggedEvent;
use toolgate_runner::{RunnerError, TenantSubscription};

/// The largest number of facts of all projections together, unless one alone has more.
const MAX_FACTS: u64 = 4096;

/// The projections, the least recently used first.
#[derive(Default)]
pub(super) struct Projections(VecDeque<(RunId, Projection)>);

/// An event of a run.
pub(super) struct ProjectedEvent {
    pub(super) event: LifecycleEvent,
    /// Whether an approval was pending before it; for `execution.pending`, whether one is.
    pub(super) with_approvals: bool,
}

struct Projection {
    lifecycle: Lifecycle,
    /// The position of the next fact to fold.
    next: u64,
    /// The facts that were read, from that position on.
    facts: VecDeque<JournalEntry>,
}

impl Projections {
    /// The events that a fact of the log yields. Empty if the content of its run was deleted.
    pub(super) async fn events_of(
        &mut self,
        fact: &LoggedEvent,
        journals: &TenantSubscription,
    ) -> Result<Vec<ProjectedEvent>, RunnerError> {
        let mut projection = self.take(fact).unwrap_or_else(|| Projection::new(&fact.run));
        let read = projection.next + projection.facts.len() as u64;
        if read <= fact.seq {
            projection.facts.extend(journals.journal(&fact.run, read).await?);
        }
        if projection.next + projection.facts.len() as u64 <= fact.seq {
            return Ok(Vec::new());
        }
        let events = projection.project(fact);
        let is_running = projection.lifecycle.run().is_some_and(|run| run.status() == Status::Running);
        if is_running || !fact.ends_append {
            self.keep(fact.run.clone(), projection);
        }
        Ok(events)
    }

    /// The kept projection of the run, unless it is past the fact.
    fn take(&mut self, fact: &LoggedEvent) -> Option<Projection> {
        let place = self.0.iter().position(|(run, _)| *run == fact.run)?;
        let (_, projection) = self.0.remove(place)?;
        Some(projection).filter(|projection| projection.next <= fact.seq)
    }

    fn keep(&mut self, run: RunId, projection: Projection) {
        self.0.push_back((run, projection));
        let facts = |kept: &VecDeque<(RunId, Projection)>| {
            kept.iter().map(|(_, projection)| projection.next + projection.facts.len() as u64).sum::<u64>()
        };
        while self.0.len() > 1 && facts(&self.0) > MAX_FACTS {
            self.0.pop_front();
        }
    }
}

impl Projection {
    fn new(run: &RunId) -> Self {
        Self { lifecycle: Lifecycle::new(run.clone(), Content::Omit), next: 0, facts: VecDeque::new() }
    }

    /// The events that a fact yields, with `execution.pending` if it leaves the run pending. The facts before it are folded.
    fn project(&mut self, logged: &LoggedEvent) -> Vec<ProjectedEvent> {
        while self.next < logged.seq
            && let Some(fact) = self.facts.pop_front()
        {
            self.next += 1;
            self.lifecycle.observe(&fact);
        }
        let Some(fact) = self.facts.pop_front() else { return Vec::new() };
        self.next += 1;
        let had_approvals = self.has_approvals();
        let events = self.lifecycle.observe(&fact);
        let Some(run) = self.lifecycle.run() else { return Vec::new() };
        // Facts that a fork copied happened to the original run.
        if (1..run.started().trigger.copied()).contains(&logged.seq) {
            return Vec::new();
        }
        let pending =
            if logged.ends_append && run.status() == Status::Pending { self.lifecycle.pending(fact.at) } else { None };
        let events = events.into_iter().map(|event| ProjectedEvent { event, with_approvals: had_approvals });
        let pending = pending.map(|event| ProjectedEvent { event, with_approvals: self.has_approvals() });
        events.chain(pending).collect()
    }

    /// Whether an approval is pending.
    fn has_approvals(&self) -> bool {
        let is_approval = |item: &PendingItem| item.binding().is_some();
        self.lifecycle.run().is_some_and(|run| run.pending_items().iter().any(is_approval))
    }
}
