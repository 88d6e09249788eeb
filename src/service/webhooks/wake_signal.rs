//! Wake signal of the webhook dispatcher: reports runs that become pending or end, so that the dispatcher need not wait
//! for its next poll.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Notify;
use toolgate_core::id::RunId;
use toolgate_core::run::JournalEntry;
use toolgate_ports::{EventSink, Update};

/// Pass one to a runner as a sink, and the same one to [`super::WebhookConfig`]. It only reduces latency: runs it misses are
/// found by polling.
#[derive(Clone, Debug, Default)]
pub struct WebhookWakeSignal(Arc<Notify>);

impl WebhookWakeSignal {
    pub(super) fn wake(&self) {
        self.0.notify_one();
    }

    pub(super) async fn notified(&self) {
        self.0.notified().await;
    }
}

impl EventSink for WebhookWakeSignal {
    fn observe(&self, _run: &RunId, _update: &Update) {}

    fn wrote_idle(&self, _run: &RunId, _history: &[JournalEntry], _facts: &[JournalEntry]) {
        self.wake();
    }

    fn released(&self, _run: &RunId, _at: Timestamp) {
        self.wake();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn idle_runs_and_writes_to_them_wake_the_dispatcher() {
        let (wake, run) = (WebhookWakeSignal::default(), RunId::new("run_1"));
        assert_eq!(wake.notified().now_or_never(), None);
        wake.released(&run, Timestamp::UNIX_EPOCH);
        assert_eq!(wake.notified().now_or_never(), Some(()));
        wake.wrote_idle(&run, &[], &[]);
        assert_eq!(wake.notified().now_or_never(), Some(()));
    }
}
