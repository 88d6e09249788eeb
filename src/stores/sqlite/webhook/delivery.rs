//! Webhook deliveries. The column `due_at` is the source of truth for the schedule; a worker that claims a message
//! moves it forward.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, Error};
use toolgate_core::id::{EndpointId, MessageId};
use toolgate_ports::{
    DeliveryFilter, DeliveryResult, DeliveryState, DueEndpoint, EndpointHealth, StoreError, WebhookDeliveries,
    WebhookDelivery,
};

use super::super::SqliteStore;
use super::super::query::query;
use super::super::units::{integer, moment, nanos};
use super::super::writer::Write;
use super::{json, parsed};

const PUT: &str = "INSERT INTO webhook_delivery (id, endpoint, created_at, due_at, body, of_run)
    SELECT ?1, ?2, ?3, ?4, ?5, run IS NOT NULL FROM webhook_endpoint WHERE id = ?2
    ON CONFLICT (id) DO UPDATE SET due_at = ?4, body = ?5";
/// Endpoints of tenants are few and may have many deliveries; those of runs are many and have few.
pub(in crate::sqlite) const DUE: &str = "SELECT id, tenant, body ->> 'url',
        (SELECT min(due_at) FROM webhook_delivery WHERE endpoint = endpoint.id AND due_at <= ?1) AS longest_due
    FROM webhook_endpoint AS endpoint INDEXED BY webhook_endpoint_by_tenant
    WHERE run IS NULL AND disabled IS NULL AND longest_due IS NOT NULL
    UNION ALL
    SELECT endpoint.id, tenant, endpoint.body ->> 'url', min(due_at)
    FROM webhook_delivery AS due INDEXED BY webhook_delivery_of_run_by_due
    CROSS JOIN webhook_endpoint AS endpoint ON endpoint.id = due.endpoint
    WHERE of_run = 1 AND due_at <= ?1 AND disabled IS NULL GROUP BY endpoint.id
    ORDER BY longest_due, id";
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
        let found: Vec<(String, String, String, i64)> = self.readers.all(query(DUE).bind(nanos(now))).await?;
        let due = |(id, tenant, url, _): (String, String, String, i64)| DueEndpoint {
            id: id.into(),
            tenant: tenant.into(),
            url,
        };
        Ok(found.into_iter().map(due).collect())
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
        let list = query(LIST)
            .bind(filter.endpoint.as_str())
            .bind(filter.id.as_ref().map(MessageId::as_str))
            .bind(filter.after.as_ref().map(MessageId::as_str))
            .bind(integer(filter.limit as u64));
        self.readers.all(list).await?.into_iter().map(read).collect()
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

impl Write for PutDelivery {
    type Answer = bool;

    fn apply(&self, db: &Connection) -> Result<bool, Error> {
        let WebhookDelivery { id, endpoint, created_at, .. } = &self.0;
        let put = query(PUT).bind(id.as_str()).bind(endpoint.as_str()).bind(nanos(*created_at));
        let done = put.bind(self.0.due_at().map(nanos)).bind(json(&self.0)?).execute(db)?;
        Ok(done == 1)
    }
}

struct ClaimDeliveries {
    endpoint: EndpointId,
    now: Timestamp,
    until: Timestamp,
    limit: usize,
}

impl Write for ClaimDeliveries {
    type Answer = Vec<Row>;

    fn apply(&self, db: &Connection) -> Result<Vec<Row>, Error> {
        let Self { endpoint, now, until, limit } = self;
        let (enabled,): (i64,) = query(ENABLED).bind(endpoint.as_str()).one(db)?;
        if enabled == 0 {
            return Ok(Vec::new());
        }
        let due = query(TAKE).bind(endpoint.as_str()).bind(nanos(*now)).bind(integer(*limit as u64));
        let due: Vec<(String,)> = due.all(db)?;
        let mut taken = Vec::with_capacity(due.len());
        for (id,) in due {
            taken.push(query(PUSH).bind(id).bind(nanos(*until)).one(db)?);
        }
        Ok(taken)
    }
}

impl Write for DeliveryResult {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        let Self { delivery, taken_until, health } = self;
        let settle = query(SETTLE).bind(delivery.id.as_str()).bind(nanos(*taken_until));
        if settle.bind(delivery.due_at().map(nanos)).bind(json(delivery)?).execute(db)? == 0 {
            return Ok(());
        }
        let endpoint = delivery.endpoint.as_str();
        let update = match health {
            EndpointHealth::Well => query(WELL).bind(endpoint),
            EndpointHealth::Failing(at) => query(FAILING).bind(endpoint).bind(nanos(*at)),
            EndpointHealth::Disabled(disabled) => query(DISABLE).bind(endpoint).bind(json(disabled)?),
            EndpointHealth::GivenUp { since, disabled } => {
                let give_up = query(GIVE_UP).bind(endpoint).bind(json(disabled)?).bind(nanos(*since));
                if give_up.execute(db)? == 1 {
                    return Ok(());
                }
                query(FAILING).bind(endpoint).bind(nanos(disabled.at))
            }
        };
        update.execute(db).map(drop)
    }
}
