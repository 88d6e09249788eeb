//! What whoever composes the program may be told of a server between calls: how long connections last and lists take. Calls
//! are not told here: whoever makes one knows.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::core::id::ServerId;

/// Something that came to its end with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The server.
    pub server: ServerId,
    /// What it was.
    pub kind: ExchangeKind,
    /// How long it took.
    pub took: Duration,
    /// Whether it ended badly: the connection was lost, or there was no list.
    pub failed: bool,
}

/// The kinds of exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeKind {
    /// A connection, from the end of the handshake.
    Session,
    /// A question for the tools, all pages of the answer included.
    ToolsList,
}

/// Whoever is told. Must return at once.
pub type Watcher = Arc<dyn Fn(&Exchange) + Send + Sync>;

/// The place of a watcher; nobody is told before it is taken.
#[derive(Default)]
pub(super) struct Watched(OnceLock<Watcher>);

impl Watched {
    /// Takes the place, once.
    pub(super) fn by(&self, watcher: Watcher) {
        // Whoever was first stays.
        let _ = self.0.set(watcher);
    }

    /// Tells whoever is there.
    pub(super) fn tell(&self, server: &ServerId, kind: ExchangeKind, took: Duration, failed: bool) {
        if let Some(watcher) = self.0.get() {
            watcher(&Exchange { server: server.clone(), kind, took, failed });
        }
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.0.get().is_some()).finish()
    }
}
