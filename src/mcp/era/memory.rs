//! What is remembered of a server over the attempts to reach it: the era that it was found to speak, so that a restart does
//! not ask again, and what an attempt failed of while others are still under way.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Era;

/// What is remembered of one server. Lost with the process, like everything about connections.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Memory(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    era: Option<Era>,
    failure: Option<String>,
}

impl Memory {
    /// The era, if it is known.
    pub(super) fn recall(&self) -> Option<Era> {
        self.lock().era
    }

    /// It was found out.
    pub(super) fn keep(&self, era: Era) {
        self.lock().era = Some(era);
    }

    /// It is no longer so.
    pub(in crate::mcp) fn forget(&self) {
        self.lock().era = None;
    }

    /// A start begins, of which nothing failed yet.
    pub(super) fn begin(&self) {
        self.lock().failure = None;
    }

    /// An attempt failed, in words that complete "the MCP server `x` ...".
    pub(super) fn failed(&self, how: String) {
        self.lock().failure = Some(how);
    }

    /// What the last attempt of this start failed of, if one did: the reason to give when time runs out over the next one.
    pub(in crate::mcp) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
