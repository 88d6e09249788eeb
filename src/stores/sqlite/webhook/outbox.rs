//! Webhook outbox: events that endpoints have not received yet. One commit creates the deliveries of a run and moves
//! its mark.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, Error, Row};
use toolgate_core::run::Status;
use toolgate_ports::{Announcement, StoreError, UnannouncedRun, WebhookDelivery, WebhookOutbox};

use super::super::SqliteStore;
use super::super::query::{FromRow, query};
use super::super::read::{self, IndexRow};
use super::super::units::{integer, nanos};
use super::super::writer::Write;
use super::json;

pub(in crate::sqlite) const UNANNOUNCED: &str =
    "SELECT * FROM run WHERE announced < version AND status <> 'running' ORDER BY id LIMIT ?1";
/// Events without an endpoint of their tenant or of their run count as announced, and so do deleted runs.
pub(in crate::sqlite) const SKIP: &str =
    "UPDATE run SET announced = version WHERE announced < version AND status <> 'running'
    AND (purged_at IS NOT NULL OR tenant NOT IN (SELECT tenant FROM webhook_endpoint WHERE run IS NULL)
        AND NOT EXISTS (SELECT 1 FROM webhook_endpoint AS endpoint WHERE endpoint.run = run.id))";
const MARK: &str = "UPDATE run SET announced = max(announced, ?2) WHERE id = ?1";
/// An endpoint that was removed in the meantime gets no message.
const MAKE: &str = "INSERT INTO webhook_delivery (id, endpoint, created_at, due_at, body, of_run)
    SELECT ?1, ?2, ?3, ?4, ?5, run IS NOT NULL FROM webhook_endpoint WHERE id = ?2
    ON CONFLICT (id) DO NOTHING";
const FORGET: &str = "DELETE FROM webhook_delivery WHERE created_at < ?1";
/// A run that never started has no row.
pub(in crate::sqlite) const FORGET_ENDPOINTS: &str =
    "DELETE FROM webhook_endpoint WHERE run IS NOT NULL AND created_at < ?1
    AND NOT EXISTS (SELECT 1 FROM webhook_delivery WHERE endpoint = webhook_endpoint.id)
    AND NOT EXISTS (SELECT 1 FROM run AS live WHERE live.id = webhook_endpoint.run
        AND (live.status IN (?2, ?3) OR live.announced < live.version))";

#[async_trait]
impl WebhookOutbox for SqliteStore {
    async fn unannounced(&self, limit: usize) -> Result<Vec<UnannouncedRun>, StoreError> {
        let mut found = self.marked(limit).await?;
        if !found.is_empty() && self.writer.make(SkipWithoutEndpoint).await? {
            found = self.marked(limit).await?;
        }
        found.into_iter().map(MarkedRow::unannounced).collect()
    }

    async fn announce(&self, announcement: Announcement) -> Result<(), StoreError> {
        self.writer.make(announcement).await
    }

    async fn forget(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.writer.make(ForgetDeliveries(before)).await
    }
}

impl SqliteStore {
    /// Idle or ended runs with events past their mark.
    async fn marked(&self, limit: usize) -> Result<Vec<MarkedRow>, StoreError> {
        self.readers.all(query(UNANNOUNCED).bind(integer(limit as u64))).await
    }
}

/// An index row and its mark.
struct MarkedRow {
    row: IndexRow,
    announced: i64,
}

impl FromRow for MarkedRow {
    fn from_row(row: &Row<'_>) -> Result<Self, Error> {
        Ok(Self { row: IndexRow::from_row(row)?, announced: row.get("announced")? })
    }
}

impl MarkedRow {
    fn unannounced(self) -> Result<UnannouncedRun, StoreError> {
        Ok(UnannouncedRun {
            row: read::listed(self.row)?,
            announced: u64::try_from(self.announced).unwrap_or_default(),
        })
    }
}

/// Marks the events of runs that no endpoint listens to as announced.
struct SkipWithoutEndpoint;

impl Write for SkipWithoutEndpoint {
    /// Whether any row changed.
    type Answer = bool;

    fn apply(&self, db: &Connection) -> Result<bool, Error> {
        Ok(query(SKIP).execute(db)? > 0)
    }
}

impl Write for Announcement {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        for delivery in &self.deliveries {
            let WebhookDelivery { id, endpoint, created_at, .. } = delivery;
            let make = query(MAKE).bind(id.as_str()).bind(endpoint.as_str()).bind(nanos(*created_at));
            make.bind(delivery.due_at().map(nanos)).bind(json(delivery)?).execute(db)?;
        }
        query(MARK).bind(self.run.as_str()).bind(integer(self.up_to)).execute(db).map(drop)
    }
}

struct ForgetDeliveries(Timestamp);

impl Write for ForgetDeliveries {
    type Answer = u64;

    fn apply(&self, db: &Connection) -> Result<u64, Error> {
        let before = nanos(self.0);
        let forgotten = query(FORGET).bind(before).execute(db)?;
        let (running, pending) = (Status::Running.as_str(), Status::Pending.as_str());
        query(FORGET_ENDPOINTS).bind(before).bind(running).bind(pending).execute(db)?;
        Ok(forgotten as u64)
    }
}
