//! SQLite store: one file that holds everything. It needs no server and no setup, and a run survives its process.
//!
//! One thread with the only writing connection makes all changes. It commits everything in its queue in one transaction,
//! so one `fsync` serves many runs. Readers have threads and connections of their own and never wait for the writer. Lists, lookups
//! and authentication use separate connections, so that a slow list delays only other lists. Only processes of one
//! machine may share the file: SQLite's locks do not work on a network file system.

mod access_key;
mod append;
mod blob;
mod claim;
mod day_usage;
mod event_log;
mod fault;
mod feedback;
mod file;
mod grant;
mod health;
mod idempotency;
mod json;
mod open;
mod page;
mod purge;
mod query;
mod read;
mod readers;
mod rule_counter;
mod session;
mod span_mark;
mod stream_ticket;
mod toolset;
mod units;
mod webhook;
mod write_check;
mod writer;

#[cfg(test)]
mod tests;

pub use open::Durability;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::id::{GrantId, NodeId, RunId, Tenant};
use toolgate_core::run::{JournalEntry, ToolGrant};
use toolgate_ports::{
    Append, AppendError, ApprovalCache, BlobError, BlobInfo, BlobStore, Claim, ClaimedSpans, CountAnswer, CountedUse,
    DayUsages, Grant, GrantContext, GrantFilter, GuardedTool, Purged, Quotas, Revoked, RuleCounters, RunFilter,
    RunPosition, RunRow, RunStore, SpanClaim, SpanMark, StoreError, UsageCounters, check_blob_size,
};

use self::append::AppendEvents;
use self::blob::{PutBlob, ReleaseBlobs, ShareBlobs};
use self::claim::Renewal;
use self::grant::RevokeGrant;
use self::health::WriteHealth;
use self::open::Options;
use self::purge::PurgeRun;
use self::query::query;
use self::readers::Readers;
use self::span_mark::MarkSpans;
use self::toolset::ToolsetStore;
use self::units::{integer, millis};
use self::writer::Writer;
use super::wellformed;

/// Journals, sessions, grants and blobs in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    writer: Writer,
    write_health: Arc<WriteHealth>,
    toolsets: Arc<ToolsetStore>,
    quotas: RwLock<Arc<Quotas>>,
    /// For lists and sweeps.
    readers: Readers,
    /// For lookups by id: a run and its journal, a grant, a blob. Lists never delay them.
    lookups: Readers,
    /// For keys and readiness checks, which no other query delays.
    reserved: Readers,
}

const READERS: usize = 4;
const LOOKUPS: usize = 4;
const RESERVED: usize = 1;

impl SqliteStore {
    /// Opens the file with [`Durability::PowerCut`].
    ///
    /// # Errors
    /// Those of [`SqliteStore::open_with_durability`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with_durability(path, Durability::default()).await
    }

    /// Opens the file and migrates its schema. Creates the file (mode 0600) and its directory (0700) if they are
    /// missing.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be opened or is locked, `Full` when there is no room to open it, `Corrupt` when it
    /// is not a database, or a newer toolgate or a build before the first release wrote it.
    pub async fn open_with_durability(path: impl AsRef<Path>, durability: Durability) -> Result<Self, StoreError> {
        Self::open_with(Options::new(path.as_ref(), durability)?).await
    }

    /// The same for a program that mostly reads: on a full disk it can be read, and each write returns `Full`. Until it is
    /// closed, no other process can open the file then.
    pub async fn open_even_if_full(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        match Self::open_with_durability(path, durability).await {
            Err(StoreError::Full(why)) => {
                let readers = Readers::exclusive(path).await?;
                let (lookups, reserved) = (readers.clone(), readers.clone());
                let writer = Writer::refusing(StoreError::Full(why));
                let (toolsets, quotas) = Default::default();
                Ok(Self { writer, write_health: Arc::default(), toolsets, quotas, readers, lookups, reserved })
            }
            opened => opened,
        }
    }

    async fn open_with(options: Options) -> Result<Self, StoreError> {
        let [readers, lookups, reserved] =
            [READERS, LOOKUPS, RESERVED].map(|threads| Readers::new(options.reading(), threads));
        let write_health = Arc::new(WriteHealth::default());
        let writer = Writer::start(options, write_health.clone()).await?;
        let (toolsets, quotas) = Default::default();
        Ok(Self { writer, write_health, toolsets, quotas, readers, lookups, reserved })
    }

    /// Writes the queued changes, then closes the file. Later requests return `Unavailable`. Closing twice is allowed.
    pub async fn close(&self) {
        // Readers first: the connection that closes last checkpoints the write-ahead log, so it must be a writer.
        tokio::join!(self.readers.close(), self.lookups.close(), self.reserved.close());
        self.writer.close().await;
    }
}

#[async_trait]
impl RunStore for SqliteStore {
    async fn append(&self, append: Append) -> Result<(), AppendError> {
        wellformed::check(&append)?;
        self.writer.make(AppendEvents::new(append, &self.toolsets, self.quotas())?).await?
    }

    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, StoreError> {
        let (of, known) = (run.clone(), self.toolsets.clone());
        let (rows, toolsets) = self.lookups.read(move |db| read::journal(db, &of, from, &known)).await?;
        let toolsets = toolsets?;
        rows.into_iter().zip(from..).map(|(row, seq)| read::fact(run, seq, row, &toolsets)).collect()
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let db = if filter.run.is_some() { &self.lookups } else { &self.readers };
        db.all(read::select(filter)).await?.into_iter().map(read::listed).collect()
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError> {
        self.writer.make(claim.clone()).await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let ids: Vec<(String,)> = self.readers.all(query(claim::ORPHANED).bind(integer(limit as u64))).await?;
        Ok(ids.into_iter().map(|(id,)| id.into()).collect())
    }

    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError> {
        self.writer.make(Renewal { owner: owner.clone(), runs: runs.to_vec(), lease }).await
    }

    async fn last_renewal(&self, run: &RunId, node: &NodeId, lease: Duration) -> Result<Option<Timestamp>, StoreError> {
        let asked = query(claim::LEASE).bind(run.as_str()).bind(node.as_str());
        let until: Vec<(i64,)> = self.lookups.all(asked).await?;
        Ok(until.first().and_then(|(until,)| Timestamp::from_millisecond(*until - millis(lease)).ok()))
    }

    async fn claim_spans(&self, claim: &SpanClaim) -> Result<ClaimedSpans, StoreError> {
        self.writer.make(claim.clone()).await
    }

    async fn mark_spans(&self, marks: &[SpanMark]) -> Result<(), StoreError> {
        self.writer.make(MarkSpans(marks.to_vec())).await
    }

    async fn unsent_spans(&self, after: Option<&RunId>, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let unsent = query(span_mark::UNSENT).bind(after.map_or("", RunId::as_str)).bind(integer(limit as u64));
        let ids: Vec<(String,)> = self.readers.all(unsent).await?;
        Ok(ids.into_iter().map(|(id,)| id.into()).collect())
    }

    async fn purge(&self, run: &RunId, at: u64, now: Timestamp) -> Result<Purged, StoreError> {
        match self.writer.make(PurgeRun { run: run.clone(), at, now }).await? {
            Some(since) => Ok(Purged::Since(read::time(run, &since)?)),
            None => Ok(Purged::No),
        }
    }

    async fn positions(&self, runs: &[RunId]) -> Result<Vec<RunPosition>, StoreError> {
        read::positions(&self.lookups, runs).await
    }

    async fn check_read(&self) -> Result<(), StoreError> {
        let nothing = RunFilter { run: Some("run_".into()), ..RunFilter::default() };
        self.reserved.all::<read::IndexRow>(read::select(&nothing)).await.map(drop)
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
        check_blob_size(&blob)?;
        let handle = blob.handle();
        self.writer.make(PutBlob { run: run.clone(), blob }).await?;
        Ok(handle)
    }

    async fn share(&self, run: &RunId, handles: &[BlobHandle]) -> Result<(), StoreError> {
        self.writer.make(ShareBlobs { run: run.clone(), handles: handles.to_vec() }).await
    }

    async fn forget(&self, run: &RunId) -> Result<(), StoreError> {
        self.writer.make(ReleaseBlobs { run: run.clone() }).await
    }

    async fn get(&self, handle: &BlobHandle) -> Result<Option<Blob>, StoreError> {
        let row = self.lookups.optional(query(blob::GET).bind(handle.digest().as_slice())).await?;
        Ok(row.map(|(media_type, bytes)| Blob::stored(*handle, media_type, bytes)))
    }

    async fn describe(&self, handle: &BlobHandle) -> Result<Option<BlobInfo>, StoreError> {
        let row: Option<(String, i64)> =
            self.lookups.optional(query(blob::DESCRIBE).bind(handle.digest().as_slice())).await?;
        Ok(row.map(|(media_type, size)| BlobInfo { media_type, size: size.unsigned_abs() }))
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
        let found = self.lookups.all(grant::covering(context, tools)).await?;
        let mut granted = Vec::new();
        for grant in grant::read(found)?.iter().filter(|grant| grant.holds(now) && grant.is_of(context)) {
            let covered = tools.iter().filter(|guarded| guarded.definition == grant.definition);
            granted.extend(covered.map(|guarded| grant.granted(&guarded.tool)));
        }
        Ok(granted)
    }

    async fn hold(&self, grants: &[GrantId], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let found = grant::read(self.lookups.all(grant::named(grants)).await?)?;
        let holds = |id: &GrantId| found.iter().any(|grant| grant.id == *id && grant.holds(now));
        Ok(grants.iter().map(holds).collect())
    }

    async fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        self.writer.make(grant.clone()).await
    }

    async fn grants(&self, filter: &GrantFilter, now: Timestamp) -> Result<Vec<Grant>, StoreError> {
        grant::read(self.readers.all(grant::select(filter, now)).await?)
    }

    async fn revoke(&self, grant: &GrantId, revoked: &Revoked) -> Result<Option<Grant>, StoreError> {
        let row = self.writer.make(RevokeGrant { grant: grant.clone(), revoked: revoked.clone() }).await?;
        Ok(grant::read(row)?.pop())
    }
}

#[async_trait]
impl UsageCounters for SqliteStore {
    fn set_quotas(&self, quotas: Quotas) {
        *self.quotas.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(quotas);
    }

    fn quotas(&self) -> Arc<Quotas> {
        self.quotas.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn used(&self, tenant: &Tenant, caller: &str, day: Date) -> Result<DayUsages, StoreError> {
        let used = query(day_usage::USED).bind(day_usage::number(day)).bind(tenant.as_str()).bind(caller);
        Ok(day_usage::usages(self.lookups.all(used).await?))
    }
}

#[async_trait]
impl RuleCounters for SqliteStore {
    async fn count(&self, used: CountedUse) -> Result<CountAnswer, StoreError> {
        self.writer.make(used).await
    }
}
