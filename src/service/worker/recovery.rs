//! Recovery of orphaned runs by a server: at startup, and soon after another process released them or its leases
//! expired.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;

use crate::recovery::recover;
use crate::shared::Service;

/// How long an unclaimed run waits at most: a process that drains releases its runs before their leases expire.
const LONGEST: Duration = Duration::from_secs(2);

pub(super) async fn run(service: Service) {
    loop {
        let mut pass = pin!(recover(service.runner()));
        while let Some(claimed) = pass.next().await {
            match claimed {
                Ok(claimed) => tracing::info!(runs = claimed.len(), "orphaned runs resumed"),
                Err(error) => tracing::warn!(%error, "failed to list orphaned runs"),
            }
        }
        tokio::time::sleep(service.runner().lease().min(LONGEST)).await;
    }
}
