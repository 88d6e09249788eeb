//! Signals from a live connection to its supervisor, without a dependency between the two.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The signals of one connection. The finder of an event sends a signal; the supervisor listens. Clones share the same
/// signals.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// The server announced a change of its tools. Signals that were not received yet count as one.
    pub(super) tools_changed: Arc<Notify>,
    /// The connection is unusable: it ended, or its server is unreachable. Final.
    pub(super) lost: CancellationToken,
}
