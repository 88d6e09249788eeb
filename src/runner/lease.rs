//! Keeping the ownership of the runs this process drives, while it drives any.

use std::sync::{Arc, PoisonError};

use super::Inner;

impl Inner {
    /// Renews all leases of this process at a third of their duration until nothing is driven any more.
    pub(super) async fn keep_leases(self: Arc<Self>) {
        let store = &self.ports.store;
        loop {
            tokio::select! {
                () = tokio::time::sleep(store.lease / 3) => {}
                () = self.idle.notified() => {}
            }
            if self.driving.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            if let Err(error) = store.runs.renew(&store.node, store.lease).await {
                tracing::warn!(%error, "leases could not be renewed; another process may take the runs over");
            }
        }
    }
}
