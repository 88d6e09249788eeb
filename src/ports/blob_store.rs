//! Blob store: content that is too large for a journal, such as media from models and large results that an event only
//! names.
//!
//! A blob is deleted with the last run or uploaded file that uses it.
//!
//! The caller keeps the order: a blob is stored first, and the event that names it is appended after that. A crash in
//! between leaves a blob without a name, never a name without a blob.

use async_trait::async_trait;
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::id::RunId;

use super::StoreError;

/// The largest blob, in bytes: 64 MiB.
pub const MAX_BLOB_BYTES: usize = 64 * 1024 * 1024;

/// The metadata of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobInfo {
    pub media_type: String,
    /// The number of bytes.
    pub size: u64,
}

/// The reason why a blob was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// It is larger than [`MAX_BLOB_BYTES`]. A retry does not help.
    #[error("{size} bytes are too many to be kept; the limit is {} MiB", MAX_BLOB_BYTES / (1024 * 1024))]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A store of blobs under the hash of their bytes.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Stores a blob, and records that the run uses it. Both are durable on return. Equal bytes are stored once, with
    /// the media type of the first blob.
    async fn put(&self, run: &RunId, blob: Blob) -> Result<BlobHandle, BlobError>;

    /// Records that a run uses existing blobs: it was forked, continues a conversation that names them, or begins with
    /// files. A handle without a blob changes nothing.
    async fn share(&self, run: &RunId, handles: &[BlobHandle]) -> Result<(), StoreError>;

    /// Removes all uses of a run. Blobs without a use are deleted.
    async fn forget(&self, run: &RunId) -> Result<(), StoreError>;

    /// The blob; `None` if it does not exist.
    async fn get(&self, handle: &BlobHandle) -> Result<Option<Blob>, StoreError>;

    /// Its type and size; `None` if it does not exist.
    async fn describe(&self, handle: &BlobHandle) -> Result<Option<BlobInfo>, StoreError>;
}

impl From<&Blob> for BlobInfo {
    fn from(blob: &Blob) -> Self {
        Self { media_type: blob.media_type.clone(), size: blob.bytes().len() as u64 }
    }
}

/// Rejects a blob that is larger than [`MAX_BLOB_BYTES`].
pub fn check_blob_size(blob: &Blob) -> Result<(), BlobError> {
    match blob.bytes().len() {
        size if size > MAX_BLOB_BYTES => Err(BlobError::TooLarge { size }),
        _ => Ok(()),
    }
}
