//! Registry of active runs: the runs that this process executes. Each run has one driver, because a second one would
//! treat the calls of the first as calls with an unknown outcome. A driver claims the run here first, and the claim is
//! released however the execution ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::Shared;
use tokio::sync::{Notify, oneshot};
use toolgate_core::id::RunId;
use toolgate_driver::WakeSignal;

use super::{IdleRun, RunnerError};

/// The end of an execution, shared by everyone who waits for it.
pub(super) type SharedResult = Shared<oneshot::Receiver<Result<IdleRun, RunnerError>>>;

#[derive(Default)]
pub(super) struct ActiveRuns {
    entries: Mutex<Entries>,
    /// The last claim was released.
    pub(super) emptied: Notify,
}

#[derive(Default)]
struct Entries {
    taken: BTreeMap<RunId, ActiveRun>,
    /// Whether a task renews the leases.
    kept: bool,
}

/// A handle to an active run.
#[derive(Clone)]
pub(super) struct ActiveRun {
    /// Wakes the driver.
    pub(super) wake: WakeSignal,
    /// Resolves when the run is idle.
    pub(super) rest: SharedResult,
}

/// The exclusive claim of a run in this process; released on drop.
pub(super) struct RunGuard {
    active_runs: Arc<ActiveRuns>,
    run: RunId,
    pub(super) driven: ActiveRun,
    done: Option<oneshot::Sender<Result<IdleRun, RunnerError>>>,
}

impl ActiveRuns {
    /// Claims a run, or returns the handle to its current execution.
    pub(super) fn claim(self: &Arc<Self>, run: &RunId) -> Result<RunGuard, ActiveRun> {
        let mut entries = self.entries();
        if let Some(driven) = entries.taken.get(run) {
            return Err(driven.clone());
        }
        let (done, rest) = oneshot::channel();
        let driven = ActiveRun { wake: WakeSignal::default(), rest: rest.shared() };
        entries.taken.insert(run.clone(), driven.clone());
        Ok(RunGuard { active_runs: self.clone(), run: run.clone(), driven, done: Some(done) })
    }

    /// Whether no task renews the leases. The caller starts one then.
    pub(super) fn lacks_renewal(&self) -> bool {
        !std::mem::replace(&mut self.entries().kept, true)
    }

    /// The handle to an active run of this process, if there is one.
    pub(super) fn driven(&self, run: &RunId) -> Option<ActiveRun> {
        self.entries().taken.get(run).cloned()
    }

    /// Every active run of this process.
    pub(super) fn runs(&self) -> Vec<RunId> {
        self.entries().taken.keys().cloned().collect()
    }

    /// Whether no run is active. The renewal task ends then, and the next claim starts a new one.
    pub(super) fn has_come_to_rest(&self) -> bool {
        let mut entries = self.entries();
        entries.kept = !entries.taken.is_empty();
        !entries.kept
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunGuard {
    /// Releases the claim, then sends the result to all who wait.
    pub(super) fn leave(mut self, idle: Result<IdleRun, RunnerError>) {
        let done = self.done.take();
        drop(self);
        if let Some(done) = done {
            // Callers that stopped waiting do not need the run.
            let _ = done.send(idle);
        }
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let mut entries = self.active_runs.entries();
        entries.taken.remove(&self.run);
        if entries.taken.is_empty() {
            self.active_runs.emptied.notify_one();
        }
    }
}
