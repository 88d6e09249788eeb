//! SQLite store: one file that holds everything. It needs no server and no setup, and a run survives its process.
//!
//! One task with the only writing connection makes all changes. It commits everything in its queue in one transaction,
//! so one `fsync` serves many runs. Readers have their own connections and never wait for the writer. Lists, lookups
//! and authentication use separate connections, so that a slow list delays only other lists. Only processes of one
//! machine may share the file: SQLite's locks do not work on a network file system.

mod access_key;
mod append;
mod blob;
mod claim;
mod fault;
mod grant;
mod health;
mod idempotency;
mod json;
mod open;
mod page;
mod purge;
mod read;
mod session;
mod units;
mod webhook;
mod write_check;
mod writer;

#[cfg(test)]
mod tests;

pub use open::Durability;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use toolgate_core::blob::BlobHandle;
use toolgate_core::id::{GrantId, NodeId, RunId};
use toolgate_core::run::{JournalEntry, ToolGrant};
use toolgate_ports::{
    Append, AppendError, ApprovalCache, Blob, BlobError, BlobInfo, BlobStore, Claim, Grant, GrantContext, GrantFilter,
    GuardedTool, Purged, Revoked, RunFilter, RunPosition, RunRow, RunStore, StoreError,
};

use self::append::AppendEvents;
use self::blob::{PutBlob, ReleaseBlobs, ShareBlobs};
use self::claim::Renewal;
use self::fault::fault;
use self::grant::RevokeGrant;
use self::health::WriteHealth;
use self::purge::PurgeRun;
use self::writer::Writer;
use super::wellformed;

/// Journals, sessions, grants and blobs in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    options: SqliteConnectOptions,
    writer: Writer,
    write_health: Arc<WriteHealth>,
    /// For lists and sweeps.
    readers: SqlitePool,
    /// For lookups by id: a run and its journal, a grant, a blob. Lists never delay them.
    lookups: SqlitePool,
    /// For keys and readiness checks, which no other query delays.
    reserved: SqlitePool,
}

const READERS: u32 = 4;
const LOOKUPS: u32 = 4;
const RESERVED: u32 = 1;

impl SqliteStore {
    /// Opens the file with [`Durability::PowerCut`].
    ///
    /// # Errors
    /// Those of [`SqliteStore::open_with_durability`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with_durability(path, Durability::default()).await
    }

    /// Opens the file and migrates its schema. Creates the file (mode 0600) and its directory (0700) if they are
    /// missing. Needs a tokio runtime, which must outlive the store.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be opened or is locked, `Full` when there is no room to open it, `Corrupt` when it
    /// is not a database, or a newer toolgate or a build before the first release wrote it.
    pub async fn open_with_durability(path: impl AsRef<Path>, durability: Durability) -> Result<Self, StoreError> {
        let options = open::options(path.as_ref(), durability)?;
        Self::open_with(options).await
    }

    /// The same for a program that mostly reads: on a full disk it can be read, and each write returns `Full`. Until it is
    /// closed, no other process can open the file then.
    pub async fn open_even_if_full(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        match Self::open_with_durability(path, durability).await {
            Err(StoreError::Full(why)) => {
                let options = open::options(path, durability)?;
                let pool = open::exclusive(options.get_filename()).await?;
                let (readers, lookups, reserved) = (pool.clone(), pool.clone(), pool);
                let writer = Writer::refusing(StoreError::Full(why));
                Ok(Self { options, writer, write_health: Arc::default(), readers, lookups, reserved })
            }
            opened => opened,
        }
    }

    async fn open_with(options: SqliteConnectOptions) -> Result<Self, StoreError> {
        let connection = open::connect_and_migrate(&options).await?;
        let [readers, lookups, reserved] = [READERS, LOOKUPS, RESERVED].map(|count| open::readers(&options, count));
        let write_health = Arc::new(WriteHealth::default());
        let writer = Writer::start(options.clone(), connection, write_health.clone());
        Ok(Self { options, writer, write_health, readers, lookups, reserved })
    }

    /// Writes the queued changes, then closes the file. Later requests return `Unavailable`. Closing twice is allowed.
    pub async fn close(&self) {
        // Readers first: the connection that closes last checkpoints the write-ahead log, so it must be a writer.
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
        self.writer.make(AppendEvents::new(append)?).await?
    }

    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, StoreError> {
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
        match self.writer.make(PurgeRun { run: run.clone(), at, now }).await? {
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
        write_check::check(&self.write_health, &self.writer).await
    }

    fn blobs(self: Arc<Self>) -> Option<Arc<dyn BlobStore>> {
        Some(self)
    }
}

#[async_trait]
impl BlobStore for SqliteStore {
    async fn put(&self, run: &RunId, blob: Blob) -> Result<BlobHandle, BlobError> {
        let handle = blob.handle()?;
        self.writer.make(PutBlob { run: run.clone(), handle, blob }).await?;
        Ok(handle)
    }

    async fn share(&self, run: &RunId, handles: &[BlobHandle]) -> Result<(), StoreError> {
        self.writer.make(ShareBlobs { run: run.clone(), handles: handles.to_vec() }).await
    }

    async fn forget(&self, run: &RunId) -> Result<(), StoreError> {
        self.writer.make(ReleaseBlobs { run: run.clone() }).await
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
    async fn granted(
        &self,
        context: &GrantContext,
        tools: &[GuardedTool],
        now: Timestamp,
    ) -> Result<Vec<ToolGrant>, StoreError> {
        let found = grant::covering(&self.lookups, context, tools).await.map_err(|error| self.fault(error))?;
        let mut granted = Vec::new();
        for grant in grant::read(found)?.iter().filter(|grant| grant.holds(now) && grant.is_of(context)) {
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
        let row = self.writer.make(RevokeGrant { grant: grant.clone(), revoked: revoked.clone() }).await?;
        Ok(grant::read(row)?.pop())
    }
}
