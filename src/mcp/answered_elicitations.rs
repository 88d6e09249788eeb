//! Answered questions of tasks. A question stays in the server's answers until the server has processed ours.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolgate_core::tool::Question;

/// The answered questions of the tasks of a connection.
#[derive(Debug, Default)]
pub(super) struct AnsweredTaskElicitations(Mutex<HashMap<String, BTreeSet<String>>>);

impl AnsweredTaskElicitations {
    /// Records that these questions of the task were answered.
    pub(super) fn note<'a>(&self, task: &str, keys: impl Iterator<Item = &'a String>) {
        self.answered().entry(task.to_owned()).or_default().extend(keys.cloned());
    }

    /// Removes the answered questions of the task.
    pub(super) fn leave_unanswered(&self, task: &str, questions: &mut BTreeMap<String, Question>) {
        if let Some(answered) = self.answered().get(task) {
            questions.retain(|key, _| !answered.contains(key));
        }
    }

    /// Forgets the task.
    pub(super) fn forget(&self, task: &str) {
        self.answered().remove(task);
    }

    fn answered(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
