//! What endpoints have not heard of yet. The mark of a run moves in the commit that makes its deliveries.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::sqlite::SqliteConnection;

use super::super::SqliteStore;
use super::super::append::{integer, nanos};
use super::super::read;
use super::super::writer::Write;
use super::json;
use crate::core::id::RunId;
use crate::ports::{RunFilter, StoreError, Told, Untold, WebhookDelivery, WebhookOutbox};

pub(in crate::stores::sqlite) const UNTOLD: &str =
    "SELECT id, told FROM run WHERE told < version AND status <> 'running' ORDER BY id LIMIT ?1";
/// What happens while nobody listens counts as told.
const UNHEARD: &str = "UPDATE run SET told = version WHERE told < version AND status <> 'running'
    AND tenant NOT IN (SELECT tenant FROM webhook_endpoint)";
const MARK: &str = "UPDATE run SET told = max(told, ?2) WHERE id = ?1";
/// Nobody waits for messages to an endpoint that was removed in between.
const MAKE: &str = "INSERT INTO webhook_delivery (id, endpoint, created_at, due_at, body)
    SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM webhook_endpoint WHERE id = ?2)
    ON CONFLICT (id) DO NOTHING";
const FORGET: &str = "DELETE FROM webhook_delivery WHERE created_at < ?1";

#[async_trait]
impl WebhookOutbox for SqliteStore {
    async fn untold(&self, limit: usize) -> Result<Vec<Untold>, StoreError> {
        if self.marks(1).await?.is_empty() {
            return Ok(Vec::new());
        }
        self.writer.make(Unheard).await?;
        let mut untold = Vec::new();
        for (id, told) in self.marks(limit).await? {
            let filter = RunFilter { run: Some(RunId::from(id)), limit: 1, ..RunFilter::default() };
            let row = read::index(&self.readers, &filter).await.map_err(|error| self.fault(error))?.pop();
            if let Some(row) = row {
                untold.push(Untold { row: read::listed(row)?, told: u64::try_from(told).unwrap_or_default() });
            }
        }
        Ok(untold)
    }

    async fn tell(&self, told: Told) -> Result<(), StoreError> {
        self.writer.make(told).await
    }

    async fn forget(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.writer.make(Forgetting(before)).await
    }
}

impl SqliteStore {
    /// Runs with something to tell, and how far each was told.
    async fn marks(&self, limit: usize) -> Result<Vec<(String, i64)>, StoreError> {
        let found = sqlx::query_as(UNTOLD).bind(integer(limit as u64)).fetch_all(&self.readers).await;
        found.map_err(|error| self.fault(error))
    }
}

struct Unheard;

#[async_trait]
impl Write for Unheard {
    type Answer = ();

    async fn apply(&self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::query(UNHEARD).execute(db).await.map(drop)
    }
}

#[async_trait]
impl Write for Told {
    type Answer = ();

    async fn apply(&self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        for delivery in &self.deliveries {
            let WebhookDelivery { id, endpoint, created_at, .. } = delivery;
            let query = sqlx::query(MAKE).bind(id.as_str()).bind(endpoint.as_str()).bind(nanos(*created_at));
            query.bind(delivery.due_at().map(nanos)).bind(json(delivery)?).execute(&mut *db).await?;
        }
        sqlx::query(MARK).bind(self.run.as_str()).bind(integer(self.up_to)).execute(db).await.map(drop)
    }
}

struct Forgetting(Timestamp);

#[async_trait]
impl Write for Forgetting {
    type Answer = u64;

    async fn apply(&self, db: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
        Ok(sqlx::query(FORGET).bind(nanos(self.0)).execute(db).await?.rows_affected())
    }
}
