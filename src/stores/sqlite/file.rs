//! Uploaded files: a row with everything but the bytes, and a use of the blob that has them.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, Error};
use toolgate_core::blob::Blob;
use toolgate_core::id::{FileId, Tenant};
use toolgate_ports::{FileError, FileFilter, FileQuota, FileStore, StoreError, StoredFile};

use super::SqliteStore;
use super::page::{self, Order};
use super::query::{Query, query};
use super::units::{integer, nanos};
use super::writer::Write;
use super::{blob, json::to_json};

pub(super) const USED: &str = "SELECT count(*), coalesce(sum(size), 0) FROM file WHERE tenant = ?1";
const PUT: &str = "INSERT INTO file (id, tenant, created_at, expires_at, size, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const DELETE: &str = "DELETE FROM file WHERE tenant = ?1 AND id = ?2 RETURNING tenant, id";
pub(super) const DELETE_EXPIRED: &str = "DELETE FROM file WHERE id IN
    (SELECT id FROM file WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2) RETURNING tenant, id";
/// Of one tenant, as many as an upload may make room for.
pub(super) const DELETE_EXPIRED_OF: &str = "DELETE FROM file WHERE id IN
    (SELECT id FROM file WHERE tenant = ?1 AND expires_at <= ?2 LIMIT 100) RETURNING tenant, id";
/// Removes stored responses that quote a file. The record that the request was answered stays.
pub(super) const UNQUOTE: &str = "UPDATE idempotency_record SET response = NULL, body = NULL
    WHERE tenant = ?1 AND response ->> 'file' = ?2";

#[async_trait]
impl FileStore for SqliteStore {
    async fn put_file(&self, file: &StoredFile, blob: Blob, quota: FileQuota) -> Result<(), FileError> {
        let body = to_json(format_args!("file {}", file.id), file)?;
        let used = self.writer.make(PutFile { file: file.clone(), body, blob, quota }).await?;
        used.map_or(Ok(()), |(files, bytes)| Err(FileError::QuotaExceeded { files, bytes }))
    }

    async fn files(&self, filter: &FileFilter) -> Result<Vec<StoredFile>, StoreError> {
        let db = if filter.id.is_some() { &self.lookups } else { &self.readers };
        db.all(select(filter)).await?.into_iter().map(read).collect()
    }

    async fn delete_file(&self, tenant: &Tenant, id: &FileId) -> Result<bool, StoreError> {
        let deleted = self.writer.make(DeleteFile { tenant: tenant.clone(), id: id.clone() }).await?;
        Ok(deleted > 0)
    }

    async fn delete_expired_files(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writer.make(DeleteExpired { now, limit }).await
    }
}

/// The query for a page of files.
pub(super) fn select(filter: &FileFilter) -> Query<'_> {
    let FileFilter { tenant, id, now, after, limit } = filter;
    let mut query = query("SELECT body FROM file WHERE tenant = ");
    query.push_bind(tenant.as_str());
    if let Some(id) = id {
        query.push(" AND id = ").push_bind(id.as_str());
    }
    // `+`: a tenant has more files than a page, and few that have expired; the index of pages is the right one.
    query.push(" AND +expires_at > ").push_bind(nanos(*now));
    page::restrict(&mut query, "file", Order::NewestFirst, after.as_ref().map(FileId::as_str), *limit);
    query
}

/// Parses a row.
fn read((body,): (String,)) -> Result<StoredFile, StoreError> {
    serde_json::from_str(&body).map_err(|error| StoreError::Corrupt(format!("a file's row is unreadable: {error}")))
}

struct PutFile {
    file: StoredFile,
    body: String,
    blob: Blob,
    quota: FileQuota,
}

impl Write for PutFile {
    /// The files and bytes of the tenant, if it would exceed the quota.
    type Answer = Option<(u64, u64)>;

    fn apply(&self, db: &Connection) -> Result<Self::Answer, Error> {
        let StoredFile { id, tenant, created_at, expires_at, size, handle, .. } = &self.file;
        // Expired files count until they are deleted: their bytes are there as long.
        release(query(DELETE_EXPIRED_OF).bind(tenant.as_str()).bind(nanos(*created_at)), db)?;
        let used: (i64, i64) = query(USED).bind(tenant.as_str()).one(db)?;
        let (files, bytes) = (used.0.unsigned_abs(), used.1.unsigned_abs());
        if files >= self.quota.files || bytes.saturating_add(*size) > self.quota.bytes {
            return Ok(Some((files, bytes)));
        }
        let put = query(PUT).bind(id.as_str()).bind(tenant.as_str()).bind(nanos(*created_at));
        put.bind(nanos(*expires_at)).bind(integer(*size)).bind(&self.body).execute(db)?;
        blob::put(id.as_str(), handle, (&self.blob.media_type, self.blob.bytes()), db)?;
        Ok(None)
    }
}

struct DeleteFile {
    tenant: Tenant,
    id: FileId,
}

impl Write for DeleteFile {
    type Answer = usize;

    fn apply(&self, db: &Connection) -> Result<usize, Error> {
        release(query(DELETE).bind(self.tenant.as_str()).bind(self.id.as_str()), db)
    }
}

struct DeleteExpired {
    now: Timestamp,
    limit: usize,
}

impl Write for DeleteExpired {
    type Answer = usize;

    fn apply(&self, db: &Connection) -> Result<usize, Error> {
        release(query(DELETE_EXPIRED).bind(nanos(self.now)).bind(integer(self.limit as u64)), db)
    }
}

/// Deletes files, the responses that quote them, and the blobs that nothing else uses.
fn release(delete: Query<'_>, db: &Connection) -> Result<usize, Error> {
    let deleted: Vec<(String, String)> = delete.all(db)?;
    for (tenant, id) in &deleted {
        query(UNQUOTE).bind(tenant).bind(id).execute(db)?;
        blob::release(id, db)?;
    }
    Ok(deleted.len())
}
