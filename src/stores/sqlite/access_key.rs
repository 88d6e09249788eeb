//! Access keys: looked up by the hash of their secret, revoked once.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, Error};
use toolgate_core::id::KeyId;
use toolgate_ports::{AccessKey, AccessKeys, KeyFilter, KeyHash, Revoked, StoreError};

use super::SqliteStore;
use super::page::{self, Order};
use super::query::{Query, query};
use super::writer::Write;

const PUT: &str = "INSERT INTO access_key (id, hash, tenant, created_at, body) VALUES (?1, ?2, ?3, ?4, ?5)";
const REVOKE: &str =
    "UPDATE access_key SET revoked = coalesce(revoked, ?2) WHERE id = ?1 RETURNING body, used_at, revoked";
const READ: &str = "SELECT body, used_at, revoked FROM access_key WHERE id = ?1";
const REPLACE: &str = "UPDATE access_key SET body = ?2 WHERE id = ?1 RETURNING body, used_at, revoked";
const TOUCH: &str = "UPDATE access_key SET used_at = max(coalesce(used_at, ''), ?2) WHERE id = ?1";
const BY_HASH: &str = "SELECT body, used_at, revoked FROM access_key WHERE hash = ?1";

/// The key as it was created, its last use, and its revocation.
type Row = (String, Option<String>, Option<String>);

#[async_trait]
impl AccessKeys for SqliteStore {
    async fn put_key(&self, hash: &KeyHash, key: &AccessKey) -> Result<(), StoreError> {
        self.writer.make(PutKey { hash: *hash, key: key.clone() }).await
    }

    async fn by_hash(&self, hash: &KeyHash) -> Result<Option<AccessKey>, StoreError> {
        let row = self.reserved.optional(query(BY_HASH).bind(hash.as_bytes())).await?;
        row.map(read).transpose()
    }

    async fn keys(&self, filter: &KeyFilter) -> Result<Vec<AccessKey>, StoreError> {
        self.readers.all(select(filter)).await?.into_iter().map(read).collect()
    }

    async fn revoke_key(&self, key: &KeyId, revoked: &Revoked) -> Result<Option<AccessKey>, StoreError> {
        self.writer.make(RevokeKey { key: key.clone(), revoked: revoked.clone() }).await?.map(read).transpose()
    }

    async fn overlap_key(&self, key: &KeyId, at: Timestamp) -> Result<Option<AccessKey>, StoreError> {
        self.writer.make(OverlapKey { key: key.clone(), at }).await?.map(read).transpose()
    }

    async fn touch(&self, key: &KeyId, at: Timestamp) -> Result<(), StoreError> {
        self.writer.make(TouchKey { key: key.clone(), at }).await
    }
}

/// The query for a page of keys.
pub(super) fn select(filter: &KeyFilter) -> Query<'_> {
    let KeyFilter { id, tenant, after, limit } = filter;
    let mut query = query("SELECT body, used_at, revoked FROM access_key WHERE true");
    if let Some(id) = id {
        query.push(" AND id = ").push_bind(id.as_str());
    }
    if let Some(tenant) = tenant {
        query.push(" AND tenant = ").push_bind(tenant.as_str());
    }
    page::restrict(&mut query, "access_key", Order::NewestFirst, after.as_ref().map(KeyId::as_str), *limit);
    query
}

/// A timestamp with all its digits. Timestamps with fewer digits do not sort by time.
fn sortable(at: Timestamp) -> String {
    format!("{at:.9}")
}

/// Parses a row.
fn read((body, used_at, revoked): Row) -> Result<AccessKey, StoreError> {
    let unreadable = |error: String| StoreError::Corrupt(format!("an access key is unreadable: {error}"));
    let key: AccessKey = serde_json::from_str(&body).map_err(|error| unreadable(error.to_string()))?;
    let used_at =
        used_at.map(|at| at.parse()).transpose().map_err(|error: jiff::Error| unreadable(error.to_string()))?;
    let revoked = revoked.map(|revoked| serde_json::from_str(&revoked)).transpose();
    Ok(AccessKey { used_at, revoked: revoked.map_err(|error| unreadable(error.to_string()))?, ..key })
}

struct PutKey {
    hash: KeyHash,
    key: AccessKey,
}

impl Write for PutKey {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        let Self { hash, key } = self;
        let body = serde_json::to_string(key).map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
        let put = query(PUT).bind(key.id.as_str()).bind(hash.as_bytes()).bind(key.tenant.as_str());
        put.bind(sortable(key.created_at)).bind(body).execute(db).map(drop)
    }
}

struct RevokeKey {
    key: KeyId,
    revoked: Revoked,
}

impl Write for RevokeKey {
    type Answer = Option<Row>;

    fn apply(&self, db: &Connection) -> Result<Option<Row>, Error> {
        let revoked =
            serde_json::to_string(&self.revoked).map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
        query(REVOKE).bind(self.key.as_str()).bind(revoked).optional(db)
    }
}

struct OverlapKey {
    key: KeyId,
    at: Timestamp,
}

impl Write for OverlapKey {
    type Answer = Option<Row>;

    fn apply(&self, db: &Connection) -> Result<Option<Row>, Error> {
        let id = self.key.as_str();
        let Some((body, ..)) = query(READ).bind(id).optional::<Row>(db)? else { return Ok(None) };
        let unreadable = |error: serde_json::Error| Error::ToSqlConversionFailure(error.into());
        let mut key: AccessKey = serde_json::from_str(&body).map_err(unreadable)?;
        key.overlap_until(self.at);
        query(REPLACE).bind(id).bind(serde_json::to_string(&key).map_err(unreadable)?).optional(db)
    }
}

struct TouchKey {
    key: KeyId,
    at: Timestamp,
}

impl Write for TouchKey {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        query(TOUCH).bind(self.key.as_str()).bind(sortable(self.at)).execute(db).map(drop)
    }
}
