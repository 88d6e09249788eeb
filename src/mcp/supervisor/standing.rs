//! How a server stands, and what led there.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::link::Link;

/// The state of a server with its history, as one value that is watched.
#[derive(Debug)]
pub(in crate::mcp) struct Standing<L> {
    pub(in crate::mcp) state: State<L>,
    /// Since when it is in this state.
    pub(in crate::mcp) since: Timestamp,
    /// Failures in a row: starts that came to nothing, connections that did not last.
    pub(in crate::mcp) failures: u32,
    /// How often it was started or dialled.
    pub(in crate::mcp) starts: u64,
    /// The newest of the failures, also after it was made good.
    pub(in crate::mcp) last_error: Option<Trouble>,
}

/// The states. Only the keeper changes them.
#[derive(Debug)]
pub(in crate::mcp) enum State<L> {
    /// Not needed yet, or not for long.
    Idle,
    /// Being started or dialled.
    Starting,
    /// Connected.
    Ready(Arc<L>),
    /// Tried again by itself at that time.
    BackingOff {
        /// When.
        until: Instant,
    },
    /// Tried again when it is needed, not before that time.
    Failed {
        /// When.
        until: Instant,
    },
    /// Shut down for good.
    Closed,
}

/// What went wrong.
#[derive(Clone, Debug)]
pub(in crate::mcp) struct Trouble {
    /// Completes the sentence "the MCP server `x` ...".
    pub(in crate::mcp) reason: Arc<str>,
    /// When.
    pub(in crate::mcp) at: Timestamp,
}

impl<L: Link> Standing<L> {
    /// Of a server that nobody needed yet.
    pub(super) fn idle() -> Self {
        Self { state: State::Idle, since: Timestamp::now(), failures: 0, starts: 0, last_error: None }
    }

    /// Enters a state.
    pub(super) fn enter(&mut self, state: State<L>) {
        self.state = state;
        self.since = Timestamp::now();
    }

    /// Notes a failure.
    pub(super) fn fail(&mut self, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        self.last_error = Some(Trouble { reason: reason.into(), at: Timestamp::now() });
    }

    /// The newest failure, or nothing if there was none.
    pub(super) fn reason(&self) -> &str {
        self.last_error.as_ref().map(|trouble| &*trouble.reason).unwrap_or_default()
    }

    /// The newest failure behind what is said of it now, or nothing if there was none.
    pub(in crate::mcp) fn before(&self) -> String {
        match self.reason() {
            "" => String::new(),
            reason => format!("; before that it {reason}"),
        }
    }

    /// The connection, if it is of use.
    pub(in crate::mcp) fn link(&self) -> Option<Arc<L>> {
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

/// Not derived: the connection is shared, never cloned.
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
