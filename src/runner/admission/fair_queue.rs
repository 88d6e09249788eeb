//! Fair admission queue: decides which runs are admitted and which is next. Pure. After each change no run waits that
//! could be admitted.

use std::collections::{BTreeMap, VecDeque};

use toolgate_core::id::Tenant;

use super::capacity::{Activity, Capacity};

/// A queued run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// The admitted and the queued runs.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    capacity: Capacity,
    driven: usize,
    /// The number of admitted runs of each tenant; tenants without any are absent.
    driven_of: BTreeMap<Tenant, usize>,
    waiting: usize,
    /// The queued runs of each tenant, first in, first out; tenants without any are absent.
    waiting_of: BTreeMap<Tenant, VecDeque<Ticket>>,
    /// The tenants with queued runs, in round-robin order.
    turns: VecDeque<Tenant>,
    tickets: u64,
}

impl FairQueue {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Sets new limits. Returns the runs that are admitted by them.
    pub(super) fn set_capacity(&mut self, capacity: Capacity) -> Vec<Ticket> {
        self.capacity = capacity;
        self.admit()
    }

    /// Adds a run. `None` if it is admitted at once.
    pub(super) fn enter(&mut self, tenant: &Tenant) -> Option<Ticket> {
        if self.has_room_for(tenant) {
            self.go(tenant);
            return None;
        }
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.waiting += 1;
        let queue = self.waiting_of.entry(tenant.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(tenant.clone());
        }
        queue.push_back(ticket);
        Some(ticket)
    }

    /// Removes an admitted run of a tenant. Returns the runs that are admitted now.
    pub(super) fn leave(&mut self, tenant: &Tenant) -> Vec<Ticket> {
        if let Some(driven) = self.driven_of.get_mut(tenant) {
            self.driven -= 1;
            *driven -= 1;
            if *driven == 0 {
                self.driven_of.remove(tenant);
            }
        }
        self.admit()
    }

    /// Removes a queued run. `false` if it is not queued because it was admitted.
    pub(super) fn give_up(&mut self, tenant: &Tenant, ticket: Ticket) -> bool {
        let Some(queue) = self.waiting_of.get_mut(tenant) else { return false };
        let Some(place) = queue.iter().position(|waiting| *waiting == ticket) else { return false };
        queue.remove(place);
        self.waiting -= 1;
        if queue.is_empty() {
            self.waiting_of.remove(tenant);
            self.turns.retain(|waiting| waiting != tenant);
        }
        true
    }

    pub(super) fn is_full_for(&self, tenant: &Tenant) -> bool {
        !self.has_room_for(tenant) && self.waiting >= self.capacity.waiting
    }

    pub(super) fn activity(&self) -> Activity {
        Activity { driven: self.driven, waiting: self.waiting }
    }

    fn has_room_for(&self, tenant: &Tenant) -> bool {
        let of_tenant = self.driven_of.get(tenant).copied().unwrap_or(0);
        self.driven < self.capacity.driven && of_tenant < self.capacity.driven_per_tenant
    }

    fn go(&mut self, tenant: &Tenant) {
        self.driven += 1;
        *self.driven_of.entry(tenant.clone()).or_default() += 1;
    }

    fn admit(&mut self) -> Vec<Ticket> {
        let mut admitted = Vec::new();
        while let Some(turn) = self.turns.iter().position(|tenant| self.has_room_for(tenant)) {
            let Some(tenant) = self.turns.remove(turn) else { break };
            let Some(queue) = self.waiting_of.get_mut(&tenant) else { break };
            admitted.extend(queue.pop_front());
            self.waiting -= 1;
            self.go(&tenant);
            if self.waiting_of.get(&tenant).is_some_and(VecDeque::is_empty) {
                self.waiting_of.remove(&tenant);
            } else {
                self.turns.push_back(tenant);
            }
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn queue(driven: usize, driven_per_tenant: usize) -> FairQueue {
        FairQueue::new(Capacity { driven, driven_per_tenant, waiting: usize::MAX })
    }

    #[test]
    fn tenants_have_their_turns_one_after_the_other() {
        let mut queue = queue(1, usize::MAX);
        assert_eq!(queue.enter(&"a".into()), None);
        let many: Vec<_> = (0..3).map(|_| queue.enter(&"a".into()).unwrap()).collect();
        let late = queue.enter(&"b".into()).unwrap();
        assert_eq!(queue.leave(&"a".into()), [many[0]]);
        assert_eq!(queue.leave(&"a".into()), [late], "its turn, although others have waited for longer");
        assert_eq!(queue.leave(&"b".into()), [many[1]]);
    }

    #[test]
    fn a_tenant_at_its_own_limit_delays_no_other_tenant() {
        let mut queue = queue(2, 1);
        assert_eq!(queue.enter(&"a".into()), None);
        let second = queue.enter(&"a".into()).unwrap();
        assert_eq!(queue.enter(&"b".into()), None);
        let third = queue.enter(&"b".into()).unwrap();
        assert_eq!(queue.leave(&"b".into()), [third]);
        assert_eq!(queue.leave(&"a".into()), [second]);
    }

    #[derive(Clone, Debug)]
    enum Act {
        Enter(u8),
        Leave(usize),
        GiveUp(usize),
        Capacity(usize, usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            4 => (0..4u8).prop_map(Act::Enter),
            3 => any::<usize>().prop_map(Act::Leave),
            1 => any::<usize>().prop_map(Act::GiveUp),
            1 => (1..6usize, 1..4usize).prop_map(|(driven, each)| Act::Capacity(driven, each)),
        ];
        prop::collection::vec(act, 0..200)
    }

    proptest! {
        #[test]
        fn limits_hold_no_ticket_is_lost_and_all_are_admitted(acts in acts()) {
            let mut queue = queue(3, 2);
            let (mut capacity, mut through, mut waits) = ((3, 2), Vec::new(), Vec::new());
            let mut arrived = BTreeMap::new();
            let mut lowered = false;
            for act in acts {
                let admitted = match act {
                    Act::Enter(tenant) => {
                        let tenant = Tenant::from(tenant.to_string().as_str());
                        match queue.enter(&tenant) {
                            None => { through.push(tenant); Vec::new() }
                            Some(ticket) => {
                                arrived.insert(ticket, tenant.clone());
                                waits.push((ticket, tenant));
                                Vec::new()
                            }
                        }
                    }
                    Act::Leave(_) if through.is_empty() => Vec::new(),
                    Act::Leave(which) => { let tenant = through.swap_remove(which % through.len()); queue.leave(&tenant) }
                    Act::GiveUp(_) if waits.is_empty() => Vec::new(),
                    Act::GiveUp(which) => {
                        let (ticket, tenant) = waits.remove(which % waits.len());
                        prop_assert!(queue.give_up(&tenant, ticket));
                        prop_assert!(!queue.give_up(&tenant, ticket));
                        Vec::new()
                    }
                    Act::Capacity(driven, each) => {
                        lowered |= driven < capacity.0 || each < capacity.1;
                        capacity = (driven, each);
                        queue.set_capacity(Capacity { driven, driven_per_tenant: each, waiting: 10 })
                    }
                };
                for ticket in admitted {
                    let first = waits.iter().position(|(_, tenant)| *tenant == arrived[&ticket]).unwrap();
                    prop_assert_eq!(waits[first].0, ticket, "within a tenant: first come, first");
                    through.push(waits.remove(first).1);
                }
                prop_assert_eq!(queue.activity(), Activity { driven: through.len(), waiting: waits.len() });
                let of = |tenant: &Tenant| through.iter().filter(|through| *through == tenant).count();
                if !lowered {
                    prop_assert!(through.len() <= capacity.0);
                    prop_assert!(through.iter().all(|tenant| of(tenant) <= capacity.1));
                }
                let could_go = |tenant: &Tenant| through.len() < capacity.0 && of(tenant) < capacity.1;
                prop_assert!(!waits.iter().any(|(_, tenant)| could_go(tenant)), "a run waits that could be admitted");
            }
            let mut waits: BTreeSet<Ticket> = waits.into_iter().map(|(ticket, _)| ticket).collect();
            while let Some(tenant) = through.pop() {
                for ticket in queue.leave(&tenant) {
                    prop_assert!(waits.remove(&ticket));
                    through.push(arrived[&ticket].clone());
                }
            }
            prop_assert!(waits.is_empty(), "no tenant starves");
        }
    }
}
