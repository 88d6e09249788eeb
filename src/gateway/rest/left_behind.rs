//! Runs whose process is gone: taken up at the start, and soon after another process laid them down or its leases ran out.

use std::time::Duration;

use crate::gateway::state::Gateway;

/// How long a run that belongs to nobody waits at most: a process that drains gives its runs up before their leases end.
const LONGEST: Duration = Duration::from_secs(2);

/// While so many wait for their turn here, others may take what is left behind.
const ENOUGH_WAIT: usize = 64;

pub(super) async fn look_after(gateway: Gateway) {
    loop {
        while gateway.runner().activity().waiting < ENOUGH_WAIT {
            match gateway.runner().recover().await {
                Ok(taken) if taken.is_empty() => break,
                Ok(taken) => tracing::info!(runs = taken.len(), "runs that were left behind go on"),
                Err(error) => {
                    tracing::warn!(%error, "runs that were left behind cannot be looked for");
                    break;
                }
            }
        }
        tokio::time::sleep(gateway.runner().lease().min(LONGEST)).await;
    }
}
