//! Keeping the ownership of the runs this process drives, while it drives any.

use std::sync::Arc;

use tokio::time::MissedTickBehavior;

use super::Inner;

impl Inner {
    /// Renews all leases of this process at a third of their duration until nothing is driven any more.
    pub(super) async fn keep_leases(self: Arc<Self>) {
        let store = &self.ports.store;
        let mut due = tokio::time::interval(store.lease / 3);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        due.reset();
        loop {
            let renew = tokio::select! {
                _ = due.tick() => true,
                () = self.driving.emptied.notified() => false,
            };
            if self.driving.has_come_to_rest() {
                return;
            }
            if renew && let Err(error) = store.runs.renew(&store.node, store.lease).await {
                tracing::warn!(%error, "leases could not be renewed; another process may take the runs over");
            }
        }
    }
}
