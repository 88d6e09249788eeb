//! Observation of exchanges between calls: how long connections last and lists take. Calls are not part of it: their
//! callers observe them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use toolgate_core::id::ServerId;

/// A finished exchange with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub server: ServerId,
    pub kind: ExchangeKind,
    pub took: Duration,
    /// Whether it failed: the connection was lost, or there was no complete list.
    pub failed: bool,
}

/// The kinds of exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeKind {
    /// A connection, from the end of the handshake.
    Session,
    /// A request for the tools, including all pages of the answer.
    ToolsList,
}

/// The observer. Must return at once.
pub type Watcher = Arc<dyn Fn(&Exchange) + Send + Sync>;

/// The slot of the observer. Exchanges before its registration are not reported.
#[derive(Default)]
pub(super) struct WatcherSlot(OnceLock<Watcher>);

impl WatcherSlot {
    /// Registers the observer, once.
    pub(super) fn by(&self, watcher: Watcher) {
        // The first observer stays.
        let _ = self.0.set(watcher);
    }

    /// Reports an exchange to the observer, if there is one.
    pub(super) fn report(&self, server: &ServerId, kind: ExchangeKind, took: Duration, failed: bool) {
        if let Some(watcher) = self.0.get() {
            watcher(&Exchange { server: server.clone(), kind, took, failed });
        }
    }
}

impl fmt::Debug for WatcherSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatcherSlot").field(&self.0.get().is_some()).finish()
    }
}
