//! Idle tracker: counts the open requests of a connection. HTTP/2 reports when a peer is gone, but not when it is idle,
//! so this counts requests for both versions.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The count of one connection. Clones share it.
#[derive(Clone, Default)]
pub(super) struct IdleTracker(Arc<watch::Sender<usize>>);

/// A request that counts as open until this is dropped.
pub(super) struct OpenRequest(IdleTracker);

impl IdleTracker {
    /// Counts one more request.
    pub(super) fn one_more(&self) -> OpenRequest {
        self.0.send_modify(|open| *open += 1);
        OpenRequest(self.clone())
    }

    /// Completes when no request arrives within `first` from now.
    pub(super) fn unused(&self, first: Duration) -> impl Future<Output = ()> + use<> {
        let mut open = self.0.subscribe();
        async move {
            if timeout(first, open.changed()).await.is_ok() {
                std::future::pending().await
            }
        }
    }

    /// Completes when there has been a request since now, and no request was open for `longest`.
    pub(super) fn idle(&self, longest: Duration) -> impl Future<Output = ()> + use<> {
        let mut open = self.0.subscribe();
        async move {
            while open.changed().await.is_ok() {
                while *open.borrow_and_update() == 0 {
                    if timeout(longest, open.changed()).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}
