//! Grants in force, as far as the views of a conversation have shown them.

use std::sync::{Arc, Mutex, PoisonError};

/// The line about the grants in force, which is shown when it changes. The views of a conversation share it.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct ShownGrants(Arc<Mutex<Option<String>>>);

impl ShownGrants {
    /// Whether the line is another one than before.
    pub(super) fn is_news(&self, line: &str) -> bool {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.replace(line.to_owned()).is_none_or(|known| known != line)
    }
}
