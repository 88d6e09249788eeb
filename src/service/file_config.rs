//! Configuration of uploaded files: the store, the limits, and the deletion of what has expired.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use toolgate_core::chat::Media;
use toolgate_ports::{FileQuota, FileStore, StoreError};

/// How many expired files are deleted in one commit.
const DELETED_AT_ONCE: usize = 16;

/// The store of files, and its limits. The runner's store of blobs has to be the same one.
#[derive(Clone)]
pub struct FileConfig {
    pub(crate) store: Arc<dyn FileStore>,
    pub(crate) limits: FileLimits,
}

/// The limits of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// The largest file, in bytes; at most [`Media::MAX_CONVERSATION_BYTES`].
    pub max_bytes: u64,
    /// The files and bytes of one tenant.
    pub quota: FileQuota,
    /// How long a file is stored at most, and by default.
    pub expire_after: Duration,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            max_bytes: Media::MAX_CONVERSATION_BYTES,
            quota: FileQuota { files: 1000, bytes: 1024 * 1024 * 1024 },
            expire_after: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

impl FileConfig {
    /// Files in this store.
    pub fn new(store: Arc<dyn FileStore>, limits: FileLimits) -> Self {
        Self { store, limits }
    }

    /// The limits of files.
    pub fn limits(&self) -> &FileLimits {
        &self.limits
    }

    /// Deletes the files of all tenants that have expired at this time. Returns their number.
    pub async fn delete_expired(&self, now: Timestamp) -> Result<usize, StoreError> {
        let mut deleted = 0;
        loop {
            let some = self.store.delete_expired_files(now, DELETED_AT_ONCE).await?;
            deleted += some;
            if some < DELETED_AT_ONCE {
                return Ok(deleted);
            }
        }
    }
}
