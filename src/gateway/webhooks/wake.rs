//! Hearing that a run came to rest, so that nobody has to wait for the next look.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::core::id::RunId;
use crate::ports::{EventSink, Update};

/// Give one to a runner as a sink, and the same one to [`super::Outbound`]. Only a hint: what nobody hears of is found by
/// looking.
#[derive(Clone, Debug, Default)]
pub struct Wake(Arc<Notify>);

impl Wake {
    pub(super) fn wake(&self) {
        self.0.notify_one();
    }

    pub(super) async fn woken(&self) {
        self.0.notified().await;
    }
}

impl EventSink for Wake {
    fn observe(&self, _run: &RunId, _update: &Update) {}

    fn laid_down(&self, _run: &RunId, _at: Timestamp) {
        self.wake();
    }
}
