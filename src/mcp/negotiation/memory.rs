//! Memory of the negotiation with a server: the detected era, so that a restart does not probe again, and the failure
//! of an attempt while others are still under way.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Era;

/// The memory of one server. Lost with the process, like everything about connections.
#[derive(Debug, Default)]
pub(crate) struct NegotiationMemory(Mutex<NegotiationRecord>);

#[derive(Debug, Default)]
struct NegotiationRecord {
    era: Option<Era>,
    failure: Option<String>,
}

impl NegotiationMemory {
    /// The era, if it is known.
    pub(super) fn recall(&self) -> Option<Era> {
        self.lock().era
    }

    /// Stores a detected era.
    pub(super) fn keep(&self, era: Era) {
        self.lock().era = Some(era);
    }

    pub(crate) fn forget(&self) {
        self.lock().era = None;
    }

    /// Begins a start without failures.
    pub(super) fn begin(&self) {
        self.lock().failure = None;
    }

    /// Records a failed attempt, in words that complete "the MCP server `x` ...".
    pub(super) fn failed(&self, how: String) {
        self.lock().failure = Some(how);
    }

    /// The failure of the last attempt of this start, if there is one: the reason to report when the next attempt
    /// times out.
    pub(crate) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    fn lock(&self) -> MutexGuard<'_, NegotiationRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
