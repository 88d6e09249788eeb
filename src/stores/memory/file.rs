//! Uploaded files in memory, for the lifetime of the process.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use toolgate_core::blob::Blob;
use toolgate_core::id::{FileId, Tenant};
use toolgate_ports::{FileError, FileFilter, FileQuota, FileStore, StoreError, StoredFile};

use super::contents::{BlobRecord, Contents};
use super::{MemoryStore, page};

#[async_trait]
impl FileStore for MemoryStore {
    async fn put_file(&self, file: &StoredFile, blob: Blob, quota: FileQuota) -> Result<(), FileError> {
        let mut contents = self.contents();
        let of_tenant = |known: &&StoredFile| known.tenant == file.tenant;
        let is_expired = |known: &&StoredFile| known.expires_at <= file.created_at;
        let expired = contents.files.values().filter(of_tenant).filter(is_expired).map(|known| known.id.clone());
        let expired: Vec<FileId> = expired.collect();
        expired.iter().for_each(|id| contents.delete_file(id));
        let sizes = || contents.files.values().filter(of_tenant).map(|known| known.size);
        let (files, bytes) = (sizes().count() as u64, sizes().sum::<u64>());
        if files >= quota.files || bytes.saturating_add(file.size) > quota.bytes {
            return Err(FileError::QuotaExceeded { files, bytes });
        }
        contents.files.insert(file.id.clone(), file.clone());
        let record = contents.blobs.entry(file.handle).or_insert_with(|| BlobRecord { blob, users: BTreeSet::new() });
        record.users.insert(file.id.as_str().into());
        Ok(())
    }

    async fn files(&self, filter: &FileFilter) -> Result<Vec<StoredFile>, StoreError> {
        let contents = self.contents();
        let after = filter.after.as_ref().map(|after| contents.files.get(after));
        let admitted = contents.files.values().filter(|file| filter.admits(file));
        Ok(page(admitted, after, filter.limit, |file| Reverse((file.created_at, &file.id))))
    }

    async fn delete_file(&self, tenant: &Tenant, id: &FileId) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        let is_there = contents.files.get(id).is_some_and(|file| file.tenant == *tenant);
        if is_there {
            contents.delete_file(id);
        }
        Ok(is_there)
    }

    async fn delete_expired_files(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut contents = self.contents();
        let expired = contents.files.values().filter(|file| file.expires_at <= now).map(|file| file.id.clone());
        let expired: Vec<FileId> = expired.take(limit).collect();
        expired.iter().for_each(|id| contents.delete_file(id));
        Ok(expired.len())
    }
}

impl Contents {
    fn delete_file(&mut self, id: &FileId) {
        self.files.remove(id);
        self.requests.values_mut().for_each(|stored| stored.forget_answer(|reply| reply.file.as_ref() == Some(id)));
        self.release_blobs(id.as_str());
    }
}
