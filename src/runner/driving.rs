//! Registry of active runs: the runs that this process executes. Each run has one driver, because a second one would
//! treat the calls of the first as calls with an unknown outcome. A driver claims the run here first, and the claim is
//! released however the execution ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::Shared;
use tokio::sync::{Notify, oneshot};

use super::lease::keep_leases;
use super::{Inner, Report, RunnerError};
use crate::core::id::RunId;
use crate::driver::Hint;

/// The end of an execution, shared by everyone who waits for it.
pub(super) type Rest = Shared<oneshot::Receiver<Result<Report, RunnerError>>>;

/// The active runs.
#[derive(Default)]
pub(super) struct Driving {
    seats: Mutex<Seats>,
    /// The last claim was released.
    pub(super) emptied: Notify,
}

#[derive(Default)]
struct Seats {
    taken: BTreeMap<RunId, Driven>,
    /// Whether a task renews the leases.
    kept: bool,
}

/// A handle to an active run.
#[derive(Clone)]
pub(super) struct Driven {
    /// Wakes the driver.
    pub(super) hint: Hint,
    /// Resolves when the run is idle.
    pub(super) rest: Rest,
}

/// The exclusive claim of a run in this process; released on drop.
pub(super) struct Seat {
    driving: Arc<Driving>,
    run: RunId,
    pub(super) driven: Driven,
    done: Option<oneshot::Sender<Result<Report, RunnerError>>>,
}

impl Inner {
    /// Claims a run, or returns the handle to its current execution.
    pub(super) fn sit(&self, run: &RunId) -> Result<Seat, Driven> {
        let mut seats = self.driving.seats();
        if let Some(driven) = seats.taken.get(run) {
            return Err(driven.clone());
        }
        let (done, rest) = oneshot::channel();
        let driven = Driven { hint: Hint::default(), rest: rest.shared() };
        seats.taken.insert(run.clone(), driven.clone());
        if !std::mem::replace(&mut seats.kept, true) {
            // The renewal task must not depend on this runner, because a reload may replace it.
            self.tasks.spawn(keep_leases(self.driving.clone(), self.ports.store.clone()));
        }
        Ok(Seat { driving: self.driving.clone(), run: run.clone(), driven, done: Some(done) })
    }
}

impl Driving {
    /// The handle to an active run of this process, if there is one.
    pub(super) fn driven(&self, run: &RunId) -> Option<Driven> {
        self.seats().taken.get(run).cloned()
    }

    /// Every active run of this process.
    pub(super) fn runs(&self) -> Vec<RunId> {
        self.seats().taken.keys().cloned().collect()
    }

    /// Whether no run is active. The renewal task ends then, and the next claim starts a new one.
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
    /// Releases the claim, then sends the result to all who wait.
    pub(super) fn leave(mut self, report: Result<Report, RunnerError>) {
        let done = self.done.take();
        drop(self);
        if let Some(done) = done {
            // Callers that stopped waiting do not need the report.
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
