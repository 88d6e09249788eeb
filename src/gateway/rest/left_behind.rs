//! Runs whose process is gone: taken up at the start, and whenever another process's leases may have run out.

use crate::gateway::state::Gateway;

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
        tokio::time::sleep(gateway.runner().lease()).await;
    }
}
