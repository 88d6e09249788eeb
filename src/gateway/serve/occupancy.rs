//! How many requests of a connection are open. HTTP/2 says when a peer is gone and not when it has nothing to ask, so that is
//! counted here, for both versions alike.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The count of one connection. Clones are of the same.
#[derive(Clone, Default)]
pub(super) struct Occupancy(Arc<watch::Sender<usize>>);

/// A request that is open until this is dropped.
pub(super) struct Occupied(Occupancy);

impl Occupancy {
    /// One more request.
    pub(super) fn one_more(&self) -> Occupied {
        self.0.send_modify(|open| *open += 1);
        Occupied(self.clone())
    }

    /// Comes about when no request came within `first` from now.
    pub(super) fn unused(&self, first: Duration) -> impl Future<Output = ()> + use<> {
        let mut open = self.0.subscribe();
        async move {
            if timeout(first, open.changed()).await.is_ok() {
                std::future::pending().await
            }
        }
    }

    /// Comes about when there has been a request from now on, and none was open for `longest`.
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

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}
