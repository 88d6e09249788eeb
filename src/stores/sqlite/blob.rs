//! Blobs: stored once under their hash, with a row for each run and each uploaded file that uses them.

use rusqlite::{Connection, Error};
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::id::RunId;

use super::query::query;
use super::writer::Write;

const PUT: &str = "INSERT INTO blob (sha256, media_type, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const USE: &str = "INSERT INTO blob_use (run, sha256) SELECT ?1, sha256 FROM blob WHERE sha256 = ?2
    ON CONFLICT DO NOTHING";

/// The blobs that nothing else uses.
pub(super) const DROP: &str = "DELETE FROM blob WHERE sha256 IN (SELECT sha256 FROM blob_use WHERE run = ?1)
    AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob_use.sha256 = blob.sha256 AND blob_use.run <> ?1)";
pub(super) const FORGET: &str = "DELETE FROM blob_use WHERE run = ?1";

/// The blob with this hash.
pub(super) const GET: &str = "SELECT media_type, bytes FROM blob WHERE sha256 = ?1";

/// SQLite knows the length of a blob without reading it.
pub(super) const DESCRIBE: &str = "SELECT media_type, length(bytes) FROM blob WHERE sha256 = ?1";

/// A blob that a run adds.
pub(super) struct PutBlob {
    pub(super) run: RunId,
    pub(super) blob: Blob,
}

impl Write for PutBlob {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        put(self.run.as_str(), &self.blob.handle(), (&self.blob.media_type, self.blob.bytes()), db)
    }
}

/// Existing blobs that another run starts to use.
pub(super) struct ShareBlobs {
    pub(super) run: RunId,
    pub(super) handles: Vec<BlobHandle>,
}

impl Write for ShareBlobs {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        for handle in &self.handles {
            note(self.run.as_str(), handle, db)?;
        }
        Ok(())
    }
}

/// A run that releases all its blobs.
pub(super) struct ReleaseBlobs {
    pub(super) run: RunId,
}

impl Write for ReleaseBlobs {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        release(self.run.as_str(), db)
    }
}

/// Removes all uses of a run or file, and the blobs that nothing else uses.
pub(super) fn release(user: &str, db: &Connection) -> Result<(), Error> {
    for statement in [DROP, FORGET] {
        query(statement).bind(user).execute(db)?;
    }
    Ok(())
}

/// Adds a blob to the run or file. A blob that the store has is not written again.
pub(super) fn put(
    user: &str,
    handle: &BlobHandle,
    (media_type, bytes): (&str, &[u8]),
    db: &Connection,
) -> Result<(), Error> {
    if note(user, handle, db)? {
        return Ok(());
    }
    query(PUT).bind(handle.digest().as_slice()).bind(media_type).bind(bytes).execute(db)?;
    note(user, handle, db).map(drop)
}

/// Records that the run or file uses the blob, if the blob exists. False if there is nothing to record.
fn note(user: &str, handle: &BlobHandle, db: &Connection) -> Result<bool, Error> {
    let added = query(USE).bind(user).bind(handle.digest().as_slice()).execute(db)?;
    Ok(added == 1)
}
