//! Per-run state: one fold per run, each behind its own lock, so that runs do not wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolgate_core::id::RunId;

/// Folds by run.
#[derive(Debug)]
pub(super) struct PerRun<T>(Mutex<HashMap<RunId, Arc<Mutex<T>>>>);

impl<T> PerRun<T> {
    /// Changes the fold of a run, if there is one.
    pub(super) fn with<R>(&self, run: &RunId, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let fold = lock(&self.0).get(run).map(Arc::clone)?;
        let result = change(&mut lock(&fold));
        Some(result)
    }

    /// Changes the fold of a run; creates it first if it is missing.
    pub(super) fn with_new<R>(&self, run: &RunId, new: impl FnOnce() -> T, change: impl FnOnce(&mut T) -> R) -> R {
        let fold = Arc::clone(lock(&self.0).entry(run.clone()).or_insert_with(|| Arc::new(Mutex::new(new()))));
        change(&mut lock(&fold))
    }

    /// Replaces the fold of a run.
    pub(super) fn put(&self, run: &RunId, fold: T) {
        lock(&self.0).insert(run.clone(), Arc::new(Mutex::new(fold)));
    }

    /// Removes the fold of a run.
    pub(super) fn forget(&self, run: &RunId) {
        lock(&self.0).remove(run);
    }
}

impl<T> Default for PerRun<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// Ignores poisoning: a fold that panicked half-way at worst reports wrong events, and must not fail the run.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
