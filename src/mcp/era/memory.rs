//! The era that a server was found to speak, so that a restart does not ask again.

use std::sync::{Mutex, PoisonError};

use super::Era;

/// What is remembered of one server. Lost with the process, like everything about connections.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Memory(Mutex<Option<Era>>);

impl Memory {
    /// The era, if it is known.
    pub(super) fn recall(&self) -> Option<Era> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It was found out.
    pub(super) fn keep(&self, era: Era) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(era);
    }

    /// It is no longer so.
    pub(in crate::mcp) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
