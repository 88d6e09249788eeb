//! Projections of the runs that a tenant stream follows: the events of a commit, projected from the journal of its run.
//!
//! A projection folds the journal from its first entry. The projections of running runs are kept for their next commits, as
//! long as all of them together have few facts: a stream of a tenant with many runs needs bounded memory, and folds the
//! journals of the others again.

use std::collections::VecDeque;

use toolgate_core::id::RunId;
use toolgate_core::lifecycle::{Content, Lifecycle, LifecycleEvent};
use toolgate_core::run::{JournalEntry, Run, Status};
use toolgate_ports::Commit;
use toolgate_runner::{CommitSubscription, RunnerError};

/// The largest number of facts of all projections together, unless one alone has more.
const MAX_FACTS: u64 = 4096;

/// The projections, the least recently used first.
#[derive(Default)]
pub(super) struct Projections(VecDeque<(RunId, Projection)>);

/// An event of a commit.
pub(super) struct CommittedEvent {
    pub(super) event: LifecycleEvent,
    /// Whether an approval was pending before it.
    pub(super) had_approvals: bool,
}

struct Projection {
    lifecycle: Lifecycle,
    /// The position of the next fact to fold.
    next: u64,
    /// The facts that were read, from that position on.
    facts: VecDeque<JournalEntry>,
}

impl Projections {
    /// The events of a commit. Empty if the content of its run was deleted.
    pub(super) async fn events_of(
        &mut self,
        commit: &Commit,
        journals: &CommitSubscription,
    ) -> Result<Vec<CommittedEvent>, RunnerError> {
        let mut projection = self.take(commit).unwrap_or_else(|| Projection::new(&commit.run));
        let read = projection.next + projection.facts.len() as u64;
        if read < commit.length {
            projection.facts.extend(journals.facts(&commit.run, read).await?);
        }
        if projection.next + (projection.facts.len() as u64) < commit.length {
            return Ok(Vec::new());
        }
        let events = projection.project(commit);
        if projection.lifecycle.run().is_some_and(|run| run.status() == Status::Running) {
            self.keep(commit.run.clone(), projection);
        }
        Ok(events)
    }

    /// The kept projection of the run, unless it is past the commit.
    fn take(&mut self, commit: &Commit) -> Option<Projection> {
        let place = self.0.iter().position(|(run, _)| *run == commit.run)?;
        let (_, projection) = self.0.remove(place)?;
        Some(projection).filter(|projection| projection.next <= commit.first)
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

    /// The events of a commit, with `execution.pending` if the run is pending after it. The facts before it are folded.
    fn project(&mut self, commit: &Commit) -> Vec<CommittedEvent> {
        let (mut events, mut at) = (Vec::new(), None);
        while self.next < commit.length
            && let Some(fact) = self.facts.pop_front()
        {
            self.next += 1;
            if fact.seq < commit.first {
                self.lifecycle.observe(&fact);
                continue;
            }
            let had_approvals = self.lifecycle.run().is_some_and(has_approvals);
            let observed = self.lifecycle.observe(&fact);
            events.extend(observed.into_iter().map(|event| CommittedEvent { event, had_approvals }));
            at = Some(fact.at);
        }
        let is_pending = self.lifecycle.run().is_some_and(|run| run.status() == Status::Pending);
        let pending = at.filter(|_| is_pending).and_then(|at| self.lifecycle.pending(at));
        events.extend(pending.map(|event| CommittedEvent { event, had_approvals: false }));
        events
    }
}

fn has_approvals(run: &Run) -> bool {
    run.pending_items().iter().any(|item| item.binding().is_some())
}
