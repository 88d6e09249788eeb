//! Recovery of orphaned runs, whose process is gone: at startup, and soon after another process released them or its
//! leases expired.

use std::time::Duration;

use crate::shared::Service;

/// How long an unclaimed run waits at most: a process that drains releases its runs before their leases expire.
const LONGEST: Duration = Duration::from_secs(2);

/// When so many runs wait for admission here, recovery pauses, so that other processes can claim orphaned runs.
const ENOUGH_WAIT: usize = 64;

pub(super) async fn run(service: Service) {
    loop {
        while service.runner().activity().waiting < ENOUGH_WAIT {
            match service.runner().recover().await {
                Ok(taken) if taken.is_empty() => break,
                Ok(taken) => tracing::info!(runs = taken.len(), "orphaned runs resumed"),
                Err(error) => {
                    tracing::warn!(%error, "failed to list orphaned runs");
                    break;
                }
            }
        }
        tokio::time::sleep(service.runner().lease().min(LONGEST)).await;
    }
}
