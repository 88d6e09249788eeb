//! One SQLite file that keeps everything: no server, no set-up, and a run survives the process that drove it.
//!
//! All changes pass through one task with the only writing connection, which commits whatever has queued up in one
//! transaction: one `fsync` serves many runs. Readers have connections of their own and never wait for it; lists, lookups, and
//! what a server needs to let requests in have different ones, so that a slow list delays other lists alone. The file is
//! for the processes of one machine; SQLite's locks mean nothing on a network file system.

mod access_key;
mod append;
mod blob;
mod claim;
mod fault;
mod grant;
mod health;
mod open;
mod page;
mod purge;
mod read;
mod reply;
mod webhook;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

use self::append::Appending;
use self::blob::{Forgetting, Putting, Sharing};
use self::claim::Renewal;
use self::fault::fault;
use self::grant::Revoking;
use self::health::WriteHealth;
use self::purge::Purging;
use self::writer::Writer;
use super::wellformed;
use crate::core::blob::BlobHandle;
use crate::core::id::{GrantId, NodeId, RunId};
use crate::core::run::{Granted, Recorded};
use crate::ports::{
    Append, AppendError, ApprovalCache, Asker, Blob, BlobError, BlobInfo, BlobStore, Claim, Grant, GrantFilter,
    Guarded, Purged, Revoked, RunFilter, RunPosition, RunRow, RunStore, StoreError,
};

/// What an acknowledged append survives. Either way nothing is ever half-written, and a killed process loses nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut and a crash of the operating system: every commit waits for the disk (`synchronous = FULL`).
    #[default]
    PowerCut,
    /// The end of the process, however sudden (`synchronous = NORMAL`). A power cut may take the last commits along;
    /// the journals are then shorter, and sound. Several times faster where `fsync` is slow.
    ProcessCrash,
}

/// Journals, grants and blobs in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    options: SqliteConnectOptions,
    writer: Writer,
    write_health: Arc<WriteHealth>,
    /// For lists and sweeps.
    readers: SqlitePool,
    /// For what is looked up by its name: a run and its journal, a grant, a blob. No list makes it wait.
    lookups: SqlitePool,
    /// For keys and readiness, which nothing else makes wait.
    reserved: SqlitePool,
}

const READERS: u32 = 4;
const LOOKUPS: u32 = 4;
const RESERVED: u32 = 1;

impl SqliteStore {
    /// Opens the file, after creating it (mode 0600) and its directory (0700) where they are missing, and brings its
    /// schema up to date. Needs a tokio runtime, which must outlive the store.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be opened or is locked, `Corrupt` when it is no database or a newer toolgate
    /// wrote it.
    pub async fn open(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        let options = open::options(path, durability)?;
        Self::open_with(options).await
    }

    async fn open_with(options: SqliteConnectOptions) -> Result<Self, StoreError> {
        let connection = open::connect_and_migrate(&options).await?;
        let [readers, lookups, reserved] = [READERS, LOOKUPS, RESERVED].map(|count| open::readers(&options, count));
        let write_health = Arc::new(WriteHealth::default());
        let writer = Writer::start(options.clone(), connection, write_health.clone());
        Ok(Self { options, writer, write_health, readers, lookups, reserved })
    }

    /// Writes what is queued, then closes the file. Whatever is asked afterwards is `Unavailable`. May be called twice.
    pub async fn close(&self) {
        // Readers first: the connection that closes last folds the write-ahead log into the file, and must be a writer.
        tokio::join!(self.readers.close(), self.lookups.close(), self.reserved.close());
        self.writer.close().await;
    }

    fn fault(&self, error: sqlx::Error) -> StoreError {
        fault(self.options.get_filename(), &error)
    }
}

#[async_trait]
impl RunStore for SqliteStore {
    async fn append(&self, append: Append) -> Result<(), AppendError> {
        wellformed::check(&append)?;
        self.writer.make(Appending::new(append)?).await?
    }

    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        let rows = read::journal(&self.lookups, run, from).await.map_err(|error| self.fault(error))?;
        rows.into_iter().zip(from..).map(|(row, seq)| read::fact(run, seq, row)).collect()
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let db = if filter.run.is_some() { &self.lookups } else { &self.readers };
        let rows = read::index(db, filter).await.map_err(|error| self.fault(error))?;
        rows.into_iter().map(read::listed).collect()
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError> {
        self.writer.make(claim.clone()).await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        claim::orphaned(&self.readers, limit).await.map_err(|error| self.fault(error))
    }

    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError> {
        self.writer.make(Renewal { owner: owner.clone(), runs: runs.to_vec(), lease }).await
    }

    async fn purge(&self, run: &RunId, at: u64, now: Timestamp) -> Result<Purged, StoreError> {
        match self.writer.make(Purging { run: run.clone(), at, now }).await? {
            Some(since) => Ok(Purged::Since(read::time(run, &since)?)),
            None => Ok(Purged::No),
        }
    }

    async fn positions(&self, runs: &[RunId]) -> Result<Vec<RunPosition>, StoreError> {
        read::positions(&self.lookups, runs).await.map_err(|error| self.fault(error))
    }

    async fn check_read(&self) -> Result<(), StoreError> {
        let nothing = RunFilter { run: Some("run_".into()), ..RunFilter::default() };
        read::index(&self.reserved, &nothing).await.map(drop).map_err(|error| self.fault(error))
    }

    async fn check_write(&self) -> Result<(), StoreError> {
        self.write_health.check(&self.writer).await
    }

    fn blobs(self: Arc<Self>) -> Option<Arc<dyn BlobStore>> {
        Some(self)
    }
}

#[async_trait]
impl BlobStore for SqliteStore {
    async fn put(&self, run: &RunId, blob: Blob) -> Result<BlobHandle, BlobError> {
        let handle = blob.handle()?;
        self.writer.make(Putting { run: run.clone(), handle, blob }).await?;
        Ok(handle)
    }

    async fn share(&self, run: &RunId, handles: &[BlobHandle]) -> Result<(), StoreError> {
        self.writer.make(Sharing { run: run.clone(), handles: handles.to_vec() }).await
    }

    async fn forget(&self, run: &RunId) -> Result<(), StoreError> {
        self.writer.make(Forgetting { run: run.clone() }).await
    }

    async fn get(&self, handle: &BlobHandle) -> Result<Option<Blob>, StoreError> {
        blob::get(&self.lookups, handle).await.map_err(|error| self.fault(error))
    }

    async fn describe(&self, handle: &BlobHandle) -> Result<Option<BlobInfo>, StoreError> {
        blob::describe(&self.lookups, handle).await.map_err(|error| self.fault(error))
    }
}

#[async_trait]
impl ApprovalCache for SqliteStore {
    async fn granted(&self, asker: &Asker, tools: &[Guarded], now: Timestamp) -> Result<Vec<Granted>, StoreError> {
        let found = grant::covering(&self.lookups, asker, tools).await.map_err(|error| self.fault(error))?;
        let mut granted = Vec::new();
        for grant in grant::read(found)?.iter().filter(|grant| grant.holds(now) && grant.is_of(asker)) {
            let covered = tools.iter().filter(|guarded| guarded.definition == grant.definition);
            granted.extend(covered.map(|guarded| grant.granted(&guarded.tool)));
        }
        Ok(granted)
    }

    async fn hold(&self, grants: &[GrantId], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let found = grant::named(&self.lookups, grants).await.map_err(|error| self.fault(error))?;
        let found = grant::read(found)?;
        let holds = |id: &GrantId| found.iter().any(|grant| grant.id == *id && grant.holds(now));
        Ok(grants.iter().map(holds).collect())
    }

    async fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        self.writer.make(grant.clone()).await
    }

    async fn grants(&self, filter: &GrantFilter, now: Timestamp) -> Result<Vec<Grant>, StoreError> {
        let found = grant::select(filter, now).build_query_as().fetch_all(&self.readers).await;
        grant::read(found.map_err(|error| self.fault(error))?)
    }

    async fn revoke(&self, grant: &GrantId, revoked: &Revoked) -> Result<Option<Grant>, StoreError> {
        let row = self.writer.make(Revoking { grant: grant.clone(), revoked: revoked.clone() }).await?;
        Ok(grant::read(row)?.pop())
    }
}
