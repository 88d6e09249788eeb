//! Admission control: limits the number of active runs and decides which queued run is next.
//!
//! A queued run is durable, owned and watched like any other; only its driver has not started. Admission is fair
//! between tenants: it alternates between them, so that a tenant who starts thousands of runs delays each other
//! tenant's next run by one. Admission knows nothing about runs: a permit is released when it is dropped, however the
//! run ends.

mod capacity;
mod fair_queue;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use toolgate_core::id::Tenant;

pub use self::capacity::{Activity, Capacity};
use self::fair_queue::{FairQueue, Ticket};

/// The admission queue.
#[derive(Default)]
pub struct Admission(Mutex<State>);

#[derive(Default)]
struct State {
    queue: FairQueue,
    /// The channels that admit queued runs.
    called: BTreeMap<Ticket, oneshot::Sender<()>>,
}

/// A place in the queue, or a permit. Released on drop.
pub struct Permit {
    admission: Arc<Admission>,
    tenant: Tenant,
    state: PermitState,
}

enum PermitState {
    Granted,
    Waiting { ticket: Ticket, called: oneshot::Receiver<()> },
}

impl Admission {
    /// An empty queue with these limits.
    pub fn new(capacity: Capacity) -> Self {
        Self(Mutex::new(State { queue: FairQueue::new(capacity), called: BTreeMap::new() }))
    }

    /// Sets new limits. Active runs beyond them continue.
    pub(super) fn set_capacity(&self, capacity: Capacity) {
        let mut state = self.state();
        let admitted = state.queue.set_capacity(capacity);
        state.call(admitted);
    }

    /// Joins the queue.
    pub fn enter(self: &Arc<Self>, tenant: Tenant) -> Permit {
        let state = self.state().enter(&tenant);
        Permit { admission: self.clone(), tenant, state }
    }

    /// Joins the queue, unless the run would have to wait and the queue is full.
    pub(super) fn enter_if_there_is_room(self: &Arc<Self>, tenant: Tenant) -> Option<Permit> {
        let mut state = self.state();
        if state.queue.is_full_for(&tenant) {
            return None;
        }
        let permit = state.enter(&tenant);
        drop(state);
        Some(Permit { admission: self.clone(), tenant, state: permit })
    }

    pub(super) fn activity(&self) -> Activity {
        self.state().queue.activity()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, tenant: &Tenant) -> PermitState {
        let Some(ticket) = self.queue.enter(tenant) else { return PermitState::Granted };
        let (call, called) = oneshot::channel();
        self.called.insert(ticket, call);
        PermitState::Waiting { ticket, called }
    }

    fn call(&mut self, admitted: Vec<Ticket>) {
        for ticket in admitted {
            if let Some(call) = self.called.remove(&ticket) {
                // A permit that was dropped leaves the queue by itself.
                let _ = call.send(());
            }
        }
    }
}

impl Permit {
    /// Whether it was granted when it was asked for, or [`granted`](Self::granted) has returned.
    pub(super) fn is_granted(&self) -> bool {
        matches!(self.state, PermitState::Granted)
    }

    /// Waits for the permit. Cancel-safe.
    pub async fn granted(&mut self) {
        if let PermitState::Waiting { called, .. } = &mut self.state {
            // The queue outlives this permit, and never drops the sender without sending.
            let _ = called.await;
            self.state = PermitState::Granted;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        let still_waits = match &self.state {
            PermitState::Waiting { ticket, .. } => {
                state.called.remove(ticket);
                state.queue.give_up(&self.tenant, *ticket)
            }
            PermitState::Granted => false,
        };
        if !still_waits {
            let admitted = state.queue.leave(&self.tenant);
            state.call(admitted);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn one_at_a_time() -> Arc<Admission> {
        Arc::new(Admission::new(Capacity { driven: 1, ..Capacity::default() }))
    }

    #[test]
    fn a_turn_is_given_on_when_it_is_dropped() {
        let admission = one_at_a_time();
        let first = admission.enter("a".into());
        let mut second = admission.enter("a".into());
        assert!(second.granted().now_or_never().is_none(), "the first is still at it");
        drop(first);
        assert!(second.granted().now_or_never().is_some());
        assert_eq!(admission.activity(), Activity { driven: 1, waiting: 0 });
    }

    #[test]
    fn a_dropped_ticket_that_was_admitted_blocks_no_other() {
        let admission = one_at_a_time();
        let first = admission.enter("a".into());
        let (second, mut third) = (admission.enter("a".into()), admission.enter("b".into()));
        drop(first);
        drop(second);
        assert!(third.granted().now_or_never().is_some());
        drop(third);
        assert_eq!(admission.activity(), Activity::default());
    }

    #[test]
    fn an_accepted_ticket_takes_the_last_place() {
        let admission = Arc::new(Admission::new(Capacity { driven: 1, waiting: 1, ..Capacity::default() }));
        let _first = admission.enter("a".into());
        let second = admission.enter_if_there_is_room("a".into());
        assert!(second.is_some() && admission.enter_if_there_is_room("a".into()).is_none());
        drop(second);
        assert!(admission.enter_if_there_is_room("a".into()).is_some(), "it was given back");
    }

    #[test]
    fn more_room_lets_those_through_who_wait() {
        let admission = one_at_a_time();
        let _first = admission.enter("a".into());
        let mut second = admission.enter("a".into());
        admission.set_capacity(Capacity { driven: 2, ..Capacity::default() });
        assert!(second.granted().now_or_never().is_some());
    }
}
