//! Expired files: deletes them, with the bytes that no run uses.

use std::time::Duration;

use crate::file_config::FileConfig;
use crate::service::Service;

/// The time between two passes. Callers do not find an expired file, whether it was deleted or not.
const INTERVAL: Duration = Duration::from_secs(600);

/// Deletes expired files again and again.
pub(super) async fn run(service: Service, files: FileConfig) {
    loop {
        match files.delete_expired(service.runner().now()).await {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "expired files deleted"),
            Err(error) => tracing::warn!(%error, "failed to delete expired files"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
