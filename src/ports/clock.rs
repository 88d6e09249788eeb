//! Clock and id generator, injected so that tests control them.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use toolgate_core::id::{RunId, SessionId};
use toolgate_core::trace::TraceId;

/// The time of day, and waiting.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// Waits for about that long.
    async fn sleep(&self, duration: Duration);
}

/// A generator of unique ids.
pub trait Ids: Send + Sync {
    /// A run id; later ones sort after earlier ones.
    fn run_id(&self) -> RunId;

    /// A session id, likewise.
    fn session_id(&self) -> SessionId;

    /// A trace id, not all zero.
    fn trace_id(&self) -> TraceId;
}
