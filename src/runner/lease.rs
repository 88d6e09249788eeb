//! Keeping the ownership of the runs this process drives, while it drives any.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::driving::Driving;
use crate::driver::Store;

/// A lease of nothing is a setting for tests; an interval of nothing is a panic.
const SHORTEST: Duration = Duration::from_millis(1);

/// Renews the leases of the runs that are driven here at a third of their duration, until nothing is driven any more.
/// A run that was claimed or driven and given up is left to whoever can do better.
pub(super) async fn keep_leases(driving: Arc<Driving>, store: Store) {
    let mut due = tokio::time::interval((store.lease / 3).max(SHORTEST));
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    due.reset();
    loop {
        let renew = tokio::select! {
            _ = due.tick() => true,
            () = driving.emptied.notified() => false,
        };
        if driving.has_come_to_rest() {
            return;
        }
        if !renew {
            continue;
        }
        if let Err(error) = store.runs.renew(&store.node, &driving.runs(), store.lease).await {
            tracing::warn!(%error, "leases could not be renewed; another process may take the runs over");
        }
    }
}
