//! Where content is kept that is too large for a journal: media that a model produced, and whatever else a fact only
//! names.
//!
//! The order is the caller's duty: a blob is put first, and the fact that names it is appended after that. A crash in
//! between leaves a blob that nothing names, never a name that leads nowhere.

use async_trait::async_trait;

use super::StoreError;
use crate::core::blob::BlobHandle;
use crate::core::id::RunId;

/// The largest blob that is kept, in bytes: 64 MiB.
pub const MAX_BLOB_BYTES: usize = 64 * 1024 * 1024;

/// Content with its type.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob {
    /// The media type, for example `image/png`.
    pub media_type: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// What is known of a blob without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobInfo {
    /// The media type.
    pub media_type: String,
    /// How many bytes it has.
    pub size: u64,
}

/// Why a blob was not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// It is larger than [`MAX_BLOB_BYTES`]. Trying again does not help.
    #[error("{size} bytes are too many to be kept; the limit is {} MiB", MAX_BLOB_BYTES / (1024 * 1024))]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// The store is at fault.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps blobs under the hash of their bytes.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Keeps a blob, and notes that the run uses it. Returns when both are durable. Bytes that are there already are
    /// kept once, with the media type they came with first.
    async fn put(&self, run: &RunId, blob: Blob) -> Result<BlobHandle, BlobError>;

    /// Notes that a run uses blobs which are there already: it was forked, or goes on with a conversation in which they
    /// are named. A handle that leads nowhere changes nothing.
    async fn share(&self, run: &RunId, handles: &[BlobHandle]) -> Result<(), StoreError>;

    /// Takes back that a run uses anything. What nobody uses any more is deleted.
    async fn forget(&self, run: &RunId) -> Result<(), StoreError>;

    /// The blob; `None` if it is not there.
    async fn get(&self, handle: &BlobHandle) -> Result<Option<Blob>, StoreError>;

    /// Its type and size; `None` if it is not there.
    async fn describe(&self, handle: &BlobHandle) -> Result<Option<BlobInfo>, StoreError>;
}

impl Blob {
    /// Its name, unless it is larger than a store keeps.
    pub fn handle(&self) -> Result<BlobHandle, BlobError> {
        match self.bytes.len() {
            size if size > MAX_BLOB_BYTES => Err(BlobError::TooLarge { size }),
            _ => Ok(BlobHandle::of(&self.bytes)),
        }
    }

    /// What is known of it without its bytes.
    pub fn info(&self) -> BlobInfo {
        BlobInfo { media_type: self.media_type.clone(), size: self.bytes.len() as u64 }
    }
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blob({}, {} bytes)", self.media_type, self.bytes.len())
    }
}
