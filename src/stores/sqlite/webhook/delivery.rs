//! Webhook deliveries. The column `due_at` is the source of truth for the schedule; a worker that claims a message
//! moves it forward.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::sqlite::SqliteConnection;
use toolgate_core::id::{EndpointId, MessageId};
use toolgate_ports::{
    DeliveryFilter, DeliveryResult, DeliveryState, DueEndpoint, EndpointHealth, StoreError, WebhookDeliveries,
    WebhookDelivery,
};

use super::super::SqliteStore;
use super::super::units::{integer, moment, nanos};
use super::super::writer::Write;
use super::{json, parsed};

const PUT: &str = "INSERT INTO webhook_delivery (id, endpoint, created_at, due_at, body)
    SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM webhook_endpoint WHERE id = ?2)
    ON CONFLICT (id) DO UPDATE SET due_at = ?4, body = ?5";
pub(in crate::sqlite) const DUE: &str = "SELECT id, tenant,
        (SELECT min(due_at) FROM webhook_delivery WHERE endpoint = endpoint.id AND due_at <= ?1) AS longest_due
    FROM webhook_endpoint AS endpoint WHERE disabled IS NULL AND longest_due IS NOT NULL ORDER BY longest_due, id";
pub(in crate::sqlite) const TAKE: &str = "SELECT id FROM webhook_delivery
    WHERE endpoint = ?1 AND due_at <= ?2 ORDER BY due_at LIMIT ?3";
const ENABLED: &str = "SELECT count(*) FROM webhook_endpoint WHERE id = ?1 AND disabled IS NULL";
const PUSH: &str = "UPDATE webhook_delivery SET due_at = ?2 WHERE id = ?1 RETURNING due_at, body";
const SETTLE: &str = "UPDATE webhook_delivery SET due_at = ?3, body = ?4 WHERE id = ?1 AND due_at = ?2";
const WELL: &str = "UPDATE webhook_endpoint SET failing_since = NULL WHERE id = ?1 AND failing_since IS NOT NULL";
const FAILING: &str = "UPDATE webhook_endpoint SET failing_since = ?2 WHERE id = ?1 AND failing_since IS NULL";
const DISABLE: &str =
    "UPDATE webhook_endpoint SET disabled = coalesce(disabled, ?2), revision = revision + 1 WHERE id = ?1";
const GIVE_UP: &str = "UPDATE webhook_endpoint SET disabled = coalesce(disabled, ?2), revision = revision + 1
    WHERE id = ?1 AND failing_since = ?3";
const LIST: &str = "SELECT due_at, body FROM webhook_delivery WHERE endpoint = ?1 AND (?2 IS NULL OR id = ?2)
    AND (?3 IS NULL OR (created_at, id) < (SELECT created_at, id FROM webhook_delivery WHERE id = ?3 AND endpoint = ?1))
    ORDER BY created_at DESC, id DESC LIMIT ?4";

/// The time it is due, and the body.
type Row = (Option<i64>, String);

#[async_trait]
impl WebhookDeliveries for SqliteStore {
    async fn enqueue(&self, delivery: &WebhookDelivery) -> Result<bool, StoreError> {
        self.writer.make(PutDelivery(delivery.clone())).await
    }

    async fn due(&self, now: Timestamp) -> Result<Vec<DueEndpoint>, StoreError> {
        let found = sqlx::query_as(DUE).bind(nanos(now)).fetch_all(&self.readers).await;
        let found: Vec<(String, String)> = found.map_err(|error| self.fault(error))?;
        Ok(found.into_iter().map(|(id, tenant)| DueEndpoint { id: id.into(), tenant: tenant.into() }).collect())
    }

    async fn take(
        &self,
        endpoint: &EndpointId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError> {
        let taken = self.writer.make(ClaimDeliveries { endpoint: endpoint.clone(), now, until, limit }).await?;
        taken.into_iter().map(read).collect()
    }

    async fn settle(&self, settled: &DeliveryResult) -> Result<(), StoreError> {
        self.writer.make(settled.clone()).await
    }

    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<WebhookDelivery>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(LIST)
            .bind(filter.endpoint.as_str())
            .bind(filter.id.as_ref().map(MessageId::as_str))
            .bind(filter.after.as_ref().map(MessageId::as_str))
            .bind(integer(filter.limit as u64))
            .fetch_all(&self.readers)
            .await
            .map_err(|error| self.fault(error))?;
        rows.into_iter().map(read).collect()
    }
}

/// The due time of a waiting delivery comes from its row, not from its body.
fn read((due_at, body): Row) -> Result<WebhookDelivery, StoreError> {
    let delivery: WebhookDelivery = parsed(&body)?;
    match due_at.and_then(moment) {
        Some(due_at) => Ok(WebhookDelivery { state: DeliveryState::Waiting { due_at }, ..delivery }),
        None => Ok(delivery),
    }
}

struct PutDelivery(WebhookDelivery);

#[async_trait]
impl Write for PutDelivery {
    type Answer = bool;

    async fn apply(&self, db: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
        let WebhookDelivery { id, endpoint, created_at, .. } = &self.0;
        let query = sqlx::query(PUT).bind(id.as_str()).bind(endpoint.as_str()).bind(nanos(*created_at));
        let done = query.bind(self.0.due_at().map(nanos)).bind(json(&self.0)?).execute(db).await?;
        Ok(done.rows_affected() == 1)
    }
}

struct ClaimDeliveries {
    endpoint: EndpointId,
    now: Timestamp,
    until: Timestamp,
    limit: usize,
}

#[async_trait]
impl Write for ClaimDeliveries {
    type Answer = Vec<Row>;

    async fn apply(&self, db: &mut SqliteConnection) -> Result<Vec<Row>, sqlx::Error> {
        let Self { endpoint, now, until, limit } = self;
        let enabled: i64 = sqlx::query_scalar(ENABLED).bind(endpoint.as_str()).fetch_one(&mut *db).await?;
        if enabled == 0 {
            return Ok(Vec::new());
        }
        let due = sqlx::query_scalar(TAKE).bind(endpoint.as_str()).bind(nanos(*now)).bind(integer(*limit as u64));
        let due: Vec<String> = due.fetch_all(&mut *db).await?;
        let mut taken = Vec::with_capacity(due.len());
        for id in due {
            taken.push(sqlx::query_as(PUSH).bind(id).bind(nanos(*until)).fetch_one(&mut *db).await?);
        }
        Ok(taken)
    }
}

#[async_trait]
impl Write for DeliveryResult {
    type Answer = ();

    async fn apply(&self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let Self { delivery, taken_until, health } = self;
        let query = sqlx::query(SETTLE).bind(delivery.id.as_str()).bind(nanos(*taken_until));
        let query = query.bind(delivery.due_at().map(nanos)).bind(json(delivery)?);
        if query.execute(&mut *db).await?.rows_affected() == 0 {
            return Ok(());
        }
        let endpoint = delivery.endpoint.as_str();
        let query = match health {
            EndpointHealth::Well => sqlx::query(WELL).bind(endpoint),
            EndpointHealth::Failing(at) => sqlx::query(FAILING).bind(endpoint).bind(nanos(*at)),
            EndpointHealth::Disabled(disabled) => sqlx::query(DISABLE).bind(endpoint).bind(json(disabled)?),
            EndpointHealth::GivenUp { since, disabled } => {
                let query = sqlx::query(GIVE_UP).bind(endpoint).bind(json(disabled)?).bind(nanos(*since));
                if query.execute(&mut *db).await?.rows_affected() == 1 {
                    return Ok(());
                }
                sqlx::query(FAILING).bind(endpoint).bind(nanos(disabled.at))
            }
        };
        query.execute(db).await.map(drop)
    }
}
