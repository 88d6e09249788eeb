//! Index of runs by what lists filter by: a page costs the runs on it, however many runs there are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use jiff::Timestamp;
use toolgate_core::id::{AgentName, RunId, SessionId, Tenant};
use toolgate_core::run::Status;
use toolgate_ports::{ListOrder, PendingKind, RunFilter, RunRow};

/// Index of runs. It is derived from the rows of the runs and changes with them.
#[derive(Debug, Default)]
pub(super) struct RunIndex {
    lists: BTreeMap<ListKey, BTreeSet<RunId>>,
    waiting_for_tasks: BTreeSet<RunId>,
    by_deadline: BTreeSet<(Timestamp, RunId)>,
}

/// The values that the runs of one list have in common. A run is in the list of each combination of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ListKey {
    tenant: Option<Tenant>,
    status: Option<&'static str>,
    agent: Option<AgentName>,
    session: Option<SessionId>,
    waits_for_approval: bool,
}

impl RunIndex {
    /// Replaces the entries of a run's previous row, if it had one.
    pub(super) fn replace(&mut self, previous: Option<&RunRow>, row: &RunRow) {
        if previous.is_some_and(|previous| has_same_entries(previous, row)) {
            return;
        }
        if let Some(previous) = previous {
            self.remove(previous);
        }
        for key in keys(row) {
            self.lists.entry(key).or_default().insert(row.id.clone());
        }
        if row.pending_counts.tasks > 0 {
            self.waiting_for_tasks.insert(row.id.clone());
        }
        if let Some(due_at) = row.pending_counts.due_at {
            self.by_deadline.insert((due_at, row.id.clone()));
        }
    }

    /// The runs that may match a filter, in its order; `None` if no index narrows the filter.
    pub(super) fn candidates<'a>(&'a self, filter: &RunFilter) -> Option<Box<dyn Iterator<Item = &'a RunId> + 'a>> {
        if let Some(by) = filter.due_by {
            let due = self.by_deadline.iter().take_while(|(due_at, _)| *due_at <= by);
            let due: BTreeSet<&RunId> = due.map(|(_, run)| run).collect();
            return Some(ordered(due.into_iter(), filter.order));
        }
        let runs = match (filter.pending_kind, ListKey::from_filter(filter)) {
            (Some(PendingKind::Task), _) => Some(&self.waiting_for_tasks),
            (Some(PendingKind::Approval) | None, Some(key)) => self.lists.get(&key),
            (Some(PendingKind::Approval) | None, None) => return None,
        };
        let Some(runs) = runs else { return Some(Box::new(std::iter::empty())) };
        let (after, before) = (filter.after.as_ref(), filter.before.as_ref());
        if after.zip(before).is_some_and(|(after, before)| after >= before) {
            return Some(Box::new(std::iter::empty()));
        }
        let range = (after.map_or(Bound::Unbounded, Bound::Excluded), before.map_or(Bound::Unbounded, Bound::Excluded));
        Some(ordered(runs.range::<RunId, _>(range), filter.order))
    }

    /// The runs with status `running`, whether a driver has claimed them or not, oldest first.
    pub(super) fn running(&self) -> impl Iterator<Item = &RunId> {
        let key = ListKey { status: Some(Status::Running.as_str()), ..ListKey::default() };
        self.lists.get(&key).into_iter().flatten()
    }

    fn remove(&mut self, row: &RunRow) {
        for key in keys(row) {
            if let Some(runs) = self.lists.get_mut(&key) {
                runs.remove(&row.id);
                if runs.is_empty() {
                    self.lists.remove(&key);
                }
            }
        }
        self.waiting_for_tasks.remove(&row.id);
        if let Some(due_at) = row.pending_counts.due_at {
            self.by_deadline.remove(&(due_at, row.id.clone()));
        }
    }
}

/// Rows that are in the order of their ids, in the order of a list.
pub(super) fn ordered<'a, T: 'a>(
    rows: impl DoubleEndedIterator<Item = T> + 'a,
    order: ListOrder,
) -> Box<dyn Iterator<Item = T> + 'a> {
    match order {
        ListOrder::NewestFirst => Box::new(rows.rev()),
        ListOrder::OldestFirst => Box::new(rows),
    }
}

impl ListKey {
    /// The list that answers a filter; `None` if no list does. Lists of all tenants exist for sweeps, which filter by
    /// status.
    fn from_filter(filter: &RunFilter) -> Option<Self> {
        let RunFilter { tenant, statuses, agent, session, pending_kind, purged, .. } = filter;
        let status = if let [status] = statuses[..] { Some(status) } else { None };
        let is_listed = match tenant {
            Some(_) => true,
            None => status.is_some() && agent.is_none() && session.is_none() && pending_kind.is_none(),
        };
        (is_listed && !purged).then(|| Self {
            tenant: tenant.clone(),
            status: status.map(Status::as_str),
            agent: agent.clone(),
            session: session.clone(),
            waits_for_approval: pending_kind.is_some(),
        })
    }
}

/// The lists that contain a run. A deleted run is in no list.
fn keys(row: &RunRow) -> Vec<ListKey> {
    let either = [false, true];
    let mut keys = Vec::new();
    if row.purged_at.is_some() {
        return keys;
    }
    let status = row.status.as_str();
    keys.push(ListKey { status: Some(status), ..ListKey::default() });
    for waits_for_approval in either.into_iter().filter(|waits| !waits || row.pending_counts.approvals > 0) {
        for by_status in either {
            for by_agent in either {
                for by_session in either {
                    keys.push(ListKey {
                        tenant: Some(row.tenant.clone()),
                        status: by_status.then_some(status),
                        agent: by_agent.then(|| row.agent.clone()),
                        session: by_session.then(|| row.session.clone()),
                        waits_for_approval,
                    });
                }
            }
        }
    }
    keys
}

/// Whether two rows of one run belong to the same lists. This holds for most appends.
fn has_same_entries(previous: &RunRow, row: &RunRow) -> bool {
    let values = |row: &RunRow| {
        (
            row.status,
            row.pending_counts.approvals > 0,
            row.pending_counts.tasks > 0,
            row.pending_counts.due_at,
            row.purged_at.is_some(),
        )
    };
    values(previous) == values(row)
        && (&previous.tenant, &previous.agent, &previous.session) == (&row.tenant, &row.agent, &row.session)
}
