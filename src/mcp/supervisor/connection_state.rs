//! Connection state of a server, with the failures that led to it.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::link::Link;

/// The state of a server with its history, as one watched value.
#[derive(Debug)]
pub(crate) struct ConnectionState<L> {
    pub(crate) state: State<L>,
    /// When it entered this state.
    pub(crate) since: Timestamp,
    /// Consecutive failures: failed starts, and connections that did not last.
    pub(crate) failures: u32,
    /// The number of starts or dials.
    pub(crate) starts: u64,
    /// The number of the last start that opened a connection.
    pub(super) opened: u64,
    /// The most recent failure, kept after a recovery.
    pub(crate) last_error: Option<FailureRecord>,
}

/// The states of a server. Only the keeper changes them.
#[derive(Debug)]
pub(crate) enum State<L> {
    /// Not needed yet, or not recently.
    Idle,
    /// Being started or dialled.
    Starting,
    Ready(Arc<L>),
    /// Waiting for the automatic retry.
    BackingOff {
        /// The time of the retry.
        until: Instant,
    },
    /// Retried when a request needs the server, but not before that time.
    Failed {
        /// The earliest time of a retry.
        until: Instant,
    },
    /// Shut down for good.
    Closed,
}

/// A failure of the server.
#[derive(Clone, Debug)]
pub(crate) struct FailureRecord {
    /// Completes the sentence "the MCP server `x` ...".
    pub(crate) reason: Arc<str>,
    pub(crate) at: Timestamp,
}

impl<L: Link> ConnectionState<L> {
    /// The state of a server that is not needed yet.
    pub(super) fn idle() -> Self {
        Self { state: State::Idle, since: Timestamp::now(), failures: 0, starts: 0, opened: 0, last_error: None }
    }

    /// Enters a state.
    pub(super) fn enter(&mut self, state: State<L>) {
        self.state = state;
        self.since = Timestamp::now();
    }

    pub(super) fn fail(&mut self, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        self.last_error = Some(FailureRecord { reason: reason.into(), at: Timestamp::now() });
    }

    /// Whether the start that a request waits for has failed. If it opened a connection that was lost before the
    /// request could use it, the request waits for one more start.
    pub(super) fn has_failed(&self, awaited: u64) -> bool {
        self.starts > awaited || (self.starts == awaited && self.opened < awaited)
    }

    /// The most recent failure; empty if there is none.
    pub(super) fn reason(&self) -> &str {
        self.last_error.as_ref().map(|error| &*error.reason).unwrap_or_default()
    }

    /// The most recent failure as the end of a message; empty if there is none.
    pub(crate) fn before(&self) -> String {
        match self.reason() {
            "" => String::new(),
            reason => format!("; before that it {reason}"),
        }
    }

    /// The connection, if it is usable.
    pub(crate) fn link(&self) -> Option<Arc<L>> {
        match &self.state {
            State::Ready(link) if !link.signals().lost.is_cancelled() => Some(link.clone()),
            State::Ready(_)
            | State::Idle
            | State::Starting
            | State::BackingOff { .. }
            | State::Failed { .. }
            | State::Closed => None,
        }
    }
}

/// Not derived: a derive would require `L: Clone`, but the connection is shared.
impl<L> Clone for State<L> {
    fn clone(&self) -> Self {
        match self {
            Self::Idle => Self::Idle,
            Self::Starting => Self::Starting,
            Self::Ready(link) => Self::Ready(link.clone()),
            Self::BackingOff { until } => Self::BackingOff { until: *until },
            Self::Failed { until } => Self::Failed { until: *until },
            Self::Closed => Self::Closed,
        }
    }
}
