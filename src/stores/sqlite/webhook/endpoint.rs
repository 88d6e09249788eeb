//! Webhook endpoints.

use async_trait::async_trait;
use rusqlite::{Connection, Error};
use toolgate_core::id::{EndpointId, RunId};
use toolgate_ports::{EndpointFilter, EndpointRuns, EndpointSaved, StoreError, WebhookEndpoint, WebhookEndpoints};

use super::super::SqliteStore;
use super::super::page::{self, Order};
use super::super::query::{Query, query};
use super::super::units::{integer, moment, nanos};
use super::super::writer::Write;
use super::{json, parsed};

const ADD: &str = "INSERT INTO webhook_endpoint (id, tenant, configured, revision, created_at, run, disabled, body)
    VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING";
const CHANGE: &str = "UPDATE webhook_endpoint SET disabled = ?3, body = ?4, revision = revision + 1,
        failing_since = CASE WHEN disabled IS NOT NULL AND ?3 IS NULL THEN NULL ELSE failing_since END
    WHERE id = ?1 AND revision = ?2";
const FIND: &str = "SELECT revision, created_at, failing_since, disabled, body FROM webhook_endpoint WHERE true";
const OF_URL: &str = "SELECT revision, created_at, failing_since, disabled, body FROM webhook_endpoint
    WHERE tenant = ?1 AND run IS NULL AND body ->> 'url' = ?2 ORDER BY created_at, id";
const COUNT: &str = "SELECT count(*) FROM webhook_endpoint WHERE tenant = ?1 AND run IS NULL";
/// A reconfigured endpoint keeps its age and is enabled again.
const CONFIGURE: &str =
    "INSERT INTO webhook_endpoint (id, tenant, configured, revision, created_at, failing_since, disabled, body)
    VALUES (?1, ?2, 1, 1, ?3, NULL, NULL, ?4)
    ON CONFLICT (id) DO UPDATE SET tenant = ?2, configured = 1, revision = revision + 1, failing_since = NULL,
        disabled = NULL, body = ?4";
const UNNAMED: &str =
    "SELECT id FROM webhook_endpoint WHERE configured = 1 AND id NOT IN (SELECT value FROM json_each(?1))";
const REMOVE: &str = "DELETE FROM webhook_endpoint WHERE id = ?1";
const REMOVE_DELIVERIES: &str = "DELETE FROM webhook_delivery WHERE endpoint = ?1";

/// Revision, creation, failing since, disabled, body.
type Row = (i64, i64, Option<i64>, Option<String>, String);

#[async_trait]
impl WebhookEndpoints for SqliteStore {
    async fn save(&self, endpoint: &WebhookEndpoint) -> Result<EndpointSaved, StoreError> {
        self.writer.make(SaveEndpoint(endpoint.clone())).await?
    }

    async fn endpoints(&self, filter: &EndpointFilter) -> Result<Vec<WebhookEndpoint>, StoreError> {
        self.readers.all(select(filter)).await?.into_iter().map(read).collect()
    }

    async fn remove(&self, endpoint: &EndpointId) -> Result<bool, StoreError> {
        self.writer.make(RemoveEndpoint(endpoint.clone())).await
    }

    async fn configure(&self, endpoints: &[WebhookEndpoint]) -> Result<(), StoreError> {
        self.writer.make(ConfigureEndpoints(endpoints.to_vec())).await
    }
}

/// The query for a page of endpoints, oldest first.
pub(in crate::sqlite) fn select(filter: &EndpointFilter) -> Query<'_> {
    let EndpointFilter { id, tenant, runs, after, limit } = filter;
    let mut query = query(FIND);
    if let Some(id) = id {
        query.push(" AND id = ").push_bind(id.as_str());
    }
    if let Some(tenant) = tenant {
        query.push(" AND tenant = ").push_bind(tenant.as_str());
    }
    match runs {
        EndpointRuns::Any => {}
        EndpointRuns::OfTenant => drop(query.push(" AND run IS NULL")),
        EndpointRuns::Only(run) => drop(query.push(" AND run = ").push_bind(run.as_str())),
    }
    let after = after.as_ref().map(EndpointId::as_str);
    page::restrict(&mut query, "webhook_endpoint", Order::OldestFirst, after, *limit);
    query
}

fn read((revision, created_at, failing_since, disabled, body): Row) -> Result<WebhookEndpoint, StoreError> {
    let endpoint: WebhookEndpoint = parsed(&body)?;
    Ok(WebhookEndpoint {
        // The column is authoritative: a reconfigured endpoint keeps its creation time.
        created_at: moment(created_at).unwrap_or(endpoint.created_at),
        revision: u64::try_from(revision).unwrap_or_default(),
        failing_since: failing_since.and_then(moment),
        disabled: disabled.as_deref().map(parsed).transpose()?,
        ..endpoint
    })
}

struct SaveEndpoint(WebhookEndpoint);

impl Write for SaveEndpoint {
    type Answer = Result<EndpointSaved, StoreError>;

    /// The database has one writer at a time, so no other change happens between these checks and the write.
    fn apply(&self, db: &Connection) -> Result<Self::Answer, Error> {
        let Self(endpoint) = self;
        if endpoint.run.is_none() {
            match refusal(db, endpoint)? {
                Ok(None) => {}
                Ok(Some(refused)) => return Ok(Ok(refused)),
                Err(error) => return Ok(Err(error)),
            }
        }
        let disabled = endpoint.disabled.as_ref().map(json).transpose()?;
        let save = match endpoint.revision {
            0 => query(ADD)
                .bind(endpoint.id.as_str())
                .bind(endpoint.tenant.as_str())
                .bind(endpoint.configured)
                .bind(nanos(endpoint.created_at))
                .bind(endpoint.run.as_ref().map(RunId::as_str)),
            revision => query(CHANGE).bind(endpoint.id.as_str()).bind(integer(revision)),
        };
        let done = save.bind(disabled).bind(json(endpoint)?).execute(db)?;
        Ok(Ok(if done == 1 { EndpointSaved::Saved } else { EndpointSaved::Stale }))
    }
}

/// Why an endpoint of a tenant is not saved, if there is a reason.
fn refusal(db: &Connection, endpoint: &WebhookEndpoint) -> Result<Result<Option<EndpointSaved>, StoreError>, Error> {
    let of_url = query(OF_URL).bind(endpoint.tenant.as_str()).bind(&endpoint.url);
    let of_url = of_url.all(db)?.into_iter().map(read).collect::<Result<Vec<_>, _>>();
    match of_url {
        Ok(of_url) if of_url.iter().any(|other| other.id == endpoint.id) => {}
        Ok(of_url) => {
            if let Some(other) = of_url.into_iter().next() {
                return Ok(Ok(Some(EndpointSaved::UrlTaken(other.into()))));
            }
        }
        Err(error) => return Ok(Err(error)),
    }
    let (count,): (i64,) = query(COUNT).bind(endpoint.tenant.as_str()).one(db)?;
    let is_full = endpoint.revision == 0 && count >= integer(WebhookEndpoint::MOST as u64);
    Ok(Ok(is_full.then_some(EndpointSaved::LimitReached)))
}

struct RemoveEndpoint(EndpointId);

impl Write for RemoveEndpoint {
    type Answer = bool;

    fn apply(&self, db: &Connection) -> Result<bool, Error> {
        remove(db, self.0.as_str())
    }
}

struct ConfigureEndpoints(Vec<WebhookEndpoint>);

impl Write for ConfigureEndpoints {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        let named: Vec<&EndpointId> = self.0.iter().map(|endpoint| &endpoint.id).collect();
        let unnamed: Vec<(String,)> = query(UNNAMED).bind(json(&named)?).all(db)?;
        for (gone,) in unnamed {
            remove(db, &gone)?;
        }
        for endpoint in &self.0 {
            let configure = query(CONFIGURE).bind(endpoint.id.as_str()).bind(endpoint.tenant.as_str());
            configure.bind(nanos(endpoint.created_at)).bind(json(endpoint)?).execute(db)?;
        }
        Ok(())
    }
}

fn remove(db: &Connection, endpoint: &str) -> Result<bool, Error> {
    query(REMOVE_DELIVERIES).bind(endpoint).execute(db)?;
    Ok(query(REMOVE).bind(endpoint).execute(db)? == 1)
}
