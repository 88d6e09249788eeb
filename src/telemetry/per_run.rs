//! One fold per run, each behind a lock of its own, so that runs do not wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::id::RunId;

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

    /// Changes the fold of a run, making it first if need be.
    pub(super) fn with_new<R>(&self, run: &RunId, new: impl FnOnce() -> T, change: impl FnOnce(&mut T) -> R) -> R {
        let fold = Arc::clone(lock(&self.0).entry(run.clone()).or_insert_with(|| Arc::new(Mutex::new(new()))));
        change(&mut lock(&fold))
    }

    /// Gives a run this fold, whatever it had before.
    pub(super) fn put(&self, run: &RunId, fold: T) {
        lock(&self.0).insert(run.clone(), Arc::new(Mutex::new(fold)));
    }

    /// Forgets a run.
    pub(super) fn forget(&self, run: &RunId) {
        lock(&self.0).remove(run);
    }
}

impl<T> Default for PerRun<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A fold that panicked half-way tells nonsense at worst; it must not take the run with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
