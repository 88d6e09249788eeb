//! What a live connection has to say to its supervisor, without either knowing the other.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The bells of one connection. Whoever learns of such a thing rings; the supervisor listens. Clones are the same bells.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// The server says that its list of tools is another one. Rings that nobody heard yet count as one.
    pub(super) tools_changed: Arc<Notify>,
    /// The connection is of no more use: its end was seen, or nobody can be reached over it. Final.
    pub(super) lost: CancellationToken,
}
