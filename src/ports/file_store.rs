//! File store: the files that callers uploaded, to be named by new runs. The bytes are blobs, which a file uses as a run
//! does: they are deleted with the last file or run that uses them.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::id::{FileId, Principal, Tenant};

use super::StoreError;

/// A file: everything but its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    pub id: FileId,
    #[serde(default)]
    pub tenant: Tenant,
    /// The principal of the caller who uploaded it, if the credentials have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The name of the file, without a path.
    pub name: String,
    /// The media type, from the first bytes.
    pub media_type: String,
    /// The number of bytes.
    pub size: u64,
    /// The blob that has the bytes.
    pub handle: BlobHandle,
    pub created_at: Timestamp,
    pub created_by: String,
    /// From then on the file does not exist for callers.
    pub expires_at: Timestamp,
}

/// The maximum of files that a tenant has at a time. Expired files count until they are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileQuota {
    pub files: u64,
    /// The bytes of all files, each counted, also where files have the same bytes.
    pub bytes: u64,
}

/// A filter of the files of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFilter {
    pub tenant: Tenant,
    /// Only this one.
    pub id: Option<FileId>,
    /// Only those that have not expired at this time.
    pub now: Timestamp,
    /// Only those after this one in the list.
    pub after: Option<FileId>,
    /// The maximum number; `None` for all.
    pub limit: Option<usize>,
}

/// The reason why a file was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The tenant would have more files or bytes than the quota.
    #[error("the tenant has {files} files with {bytes} bytes")]
    QuotaExceeded {
        /// The files that it has.
        files: u64,
        /// The bytes that they have.
        bytes: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The store of files. It stores the bytes as the [`BlobStore`](super::BlobStore) of the runs does.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Stores a file and its bytes, unless the tenant would exceed the quota. Expired files of the tenant, at least 100 of
    /// them, are deleted first. File and bytes are durable on return. The blob is at most
    /// [`MAX_BLOB_BYTES`](super::MAX_BLOB_BYTES) large.
    async fn put_file(&self, file: &StoredFile, blob: Blob, quota: FileQuota) -> Result<(), FileError>;

    /// Files, newest first. Empty after a file that does not exist.
    async fn files(&self, filter: &FileFilter) -> Result<Vec<StoredFile>, StoreError>;

    /// Deletes a file of a tenant, the stored response to its upload, and its bytes unless something else uses them. `false` if
    /// there is no such file.
    async fn delete_file(&self, tenant: &Tenant, id: &FileId) -> Result<bool, StoreError>;

    /// Deletes files that have expired at this time, up to a maximum number, as [`delete_file`](Self::delete_file) does.
    /// Returns their number.
    async fn delete_expired_files(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

impl FileFilter {
    /// Whether a file matches, regardless of the page.
    pub fn admits(&self, file: &StoredFile) -> bool {
        file.tenant == self.tenant && self.id.as_ref().is_none_or(|id| file.id == *id) && self.now < file.expires_at
    }
}
