//! Blobs: stored once under their hash, with a row for each run that uses them.

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use toolgate_core::blob::BlobHandle;
use toolgate_core::id::RunId;
use toolgate_ports::{Blob, BlobInfo};

use super::writer::Write;

const PUT: &str = "INSERT INTO blob (sha256, media_type, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const USE: &str = "INSERT INTO blob_use (run, sha256) SELECT ?1, sha256 FROM blob WHERE sha256 = ?2
    ON CONFLICT DO NOTHING";

/// The blobs that no other run uses.
const DROP: &str = "DELETE FROM blob WHERE sha256 IN (SELECT sha256 FROM blob_use WHERE run = ?1)
    AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob_use.sha256 = blob.sha256 AND blob_use.run <> ?1)";
const FORGET: &str = "DELETE FROM blob_use WHERE run = ?1";

/// The blob with this hash.
pub(super) const GET: &str = "SELECT media_type, bytes FROM blob WHERE sha256 = ?1";

/// SQLite knows the length of a blob without reading it.
pub(super) const DESCRIBE: &str = "SELECT media_type, length(bytes) FROM blob WHERE sha256 = ?1";

/// A blob that a run adds.
pub(super) struct PutBlob {
    pub(super) run: RunId,
    pub(super) handle: BlobHandle,
    pub(super) blob: Blob,
}

#[async_trait]
impl Write for PutBlob {
    type Answer = ();

    async fn apply(&self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let digest = self.handle.digest().as_slice();
        sqlx::query(PUT)
            .bind(digest)
            .bind(&self.blob.media_type)
            .bind(self.blob.bytes.as_slice())
            .execute(&mut *db)
            .await?;
        note(&self.run, &self.handle, db).await
    }
}

/// Existing blobs that another run starts to use.
pub(super) struct ShareBlobs {
    pub(super) run: RunId,
    pub(super) handles: Vec<BlobHandle>,
}

#[async_trait]
impl Write for ShareBlobs {
    type Answer = ();

    async fn apply(&self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        for handle in &self.handles {
            note(&self.run, handle, db).await?;
        }
        Ok(())
    }
}

/// A run that releases all its blobs.
pub(super) struct ReleaseBlobs {
    pub(super) run: RunId,
}

#[async_trait]
impl Write for ReleaseBlobs {
    type Answer = ();

    async fn apply(&self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        for statement in [DROP, FORGET] {
            sqlx::query(statement).bind(self.run.as_str()).execute(&mut *db).await?;
        }
        Ok(())
    }
}

/// Records that the run uses the blob, if the blob exists.
async fn note(run: &RunId, handle: &BlobHandle, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query(USE).bind(run.as_str()).bind(handle.digest().as_slice()).execute(db).await?;
    Ok(())
}

/// The blob; `None` if it does not exist.
pub(super) async fn get(db: &SqlitePool, handle: &BlobHandle) -> Result<Option<Blob>, sqlx::Error> {
    let row: Option<(String, Vec<u8>)> =
        sqlx::query_as(GET).bind(handle.digest().as_slice()).fetch_optional(db).await?;
    Ok(row.map(|(media_type, bytes)| Blob { media_type, bytes }))
}

/// Type and size of a blob; `None` if it does not exist.
pub(super) async fn describe(db: &SqlitePool, handle: &BlobHandle) -> Result<Option<BlobInfo>, sqlx::Error> {
    let row: Option<(String, i64)> =
        sqlx::query_as(DESCRIBE).bind(handle.digest().as_slice()).fetch_optional(db).await?;
    Ok(row.map(|(media_type, size)| BlobInfo { media_type, size: size.unsigned_abs() }))
}
