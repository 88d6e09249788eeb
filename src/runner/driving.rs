//! The runs this process drives. One driver per run: a second one would take the calls of the first for calls whose
//! outcome nobody knows. Whoever wants to drive a run takes its seat first, and a seat is given back however it ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::Shared;
use tokio::sync::{Notify, oneshot};

use super::lease::keep_leases;
use super::{Inner, Report, RunnerError};
use crate::core::id::RunId;
use crate::driver::Hint;

/// How the execution of a run comes to rest; everybody who waits is told.
pub(super) type Rest = Shared<oneshot::Receiver<Result<Report, RunnerError>>>;

/// Who drives what.
#[derive(Default)]
pub(super) struct Driving {
    seats: Mutex<Seats>,
    /// The last seat was given back.
    pub(super) emptied: Notify,
}

#[derive(Default)]
struct Seats {
    taken: BTreeMap<RunId, Driven>,
    /// Whether a task keeps the leases.
    kept: bool,
}

/// A run that is driven, as others see it.
#[derive(Clone)]
pub(super) struct Driven {
    /// Wakes its driver.
    pub(super) hint: Hint,
    /// Its coming to rest.
    pub(super) rest: Rest,
}

/// The right to drive a run in this process; given back when dropped.
pub(super) struct Seat {
    driving: Arc<Driving>,
    run: RunId,
    pub(super) driven: Driven,
    done: Option<oneshot::Sender<Result<Report, RunnerError>>>,
}

impl Inner {
    /// Takes the seat of a run, or tells of whoever has it.
    pub(super) fn sit(&self, run: &RunId) -> Result<Seat, Driven> {
        let mut seats = self.driving.seats();
        if let Some(driven) = seats.taken.get(run) {
            return Err(driven.clone());
        }
        let (done, rest) = oneshot::channel();
        let driven = Driven { hint: Hint::default(), rest: rest.shared() };
        seats.taken.insert(run.clone(), driven.clone());
        if !std::mem::replace(&mut seats.kept, true) {
            // Whoever keeps the leases outlives this runner: another one may have taken its place by then.
            self.tasks.spawn(keep_leases(self.driving.clone(), self.ports.store.clone()));
        }
        Ok(Seat { driving: self.driving.clone(), run: run.clone(), driven, done: Some(done) })
    }
}

impl Driving {
    /// The run as its driver in this process has it, if there is one.
    pub(super) fn driven(&self, run: &RunId) -> Option<Driven> {
        self.seats().taken.get(run).cloned()
    }

    /// Every run that is driven here.
    pub(super) fn runs(&self) -> Vec<RunId> {
        self.seats().taken.keys().cloned().collect()
    }

    /// Whether nothing is driven any more. The leases are then nobody's business until the next seat is taken.
    pub(super) fn has_come_to_rest(&self) -> bool {
        let mut seats = self.seats();
        seats.kept = !seats.taken.is_empty();
        !seats.kept
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Gives the seat back, then tells everybody who waits how the execution came to rest.
    pub(super) fn leave(mut self, report: Result<Report, RunnerError>) {
        let done = self.done.take();
        drop(self);
        if let Some(done) = done {
            // Callers that went away do not want the report.
            let _ = done.send(report);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.driving.seats();
        seats.taken.remove(&self.run);
        if seats.taken.is_empty() {
            self.driving.emptied.notify_one();
        }
    }
}
