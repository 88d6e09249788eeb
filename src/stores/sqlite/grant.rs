//! Grants: stored once however often they are given, revoked once, looked up by the definition they cover.

use jiff::Timestamp;
use rusqlite::{Connection, Error};
use toolgate_core::id::GrantId;
use toolgate_ports::{Grant, GrantContext, GrantFilter, GuardedTool, Revoked, StoreError};

use super::page::{self, Order};
use super::query::{Query, query};
use super::writer::Write;

const GRANT: &str =
    "INSERT INTO approval_grant (id, definition, created_at, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
const REVOKE: &str = "UPDATE approval_grant SET revoked = coalesce(revoked, ?2) WHERE id = ?1 RETURNING body, revoked";
/// `CROSS JOIN` makes SQLite look up each key instead of reading every grant.
pub(super) const COVERING: &str =
    "SELECT given.body, given.revoked FROM json_each(?1) AS asked CROSS JOIN approval_grant AS given
    ON given.definition = asked.value WHERE given.revoked IS NULL
    AND coalesce(given.body ->> 'tenant', 'default') = ?2 AND coalesce(given.body ->> 'session', '') IN ('', ?3)";
pub(super) const NAMED: &str =
    "SELECT given.body, given.revoked FROM json_each(?1) AS asked CROSS JOIN approval_grant AS given
    ON given.id = asked.value";

/// Deletes the texts of grants, as `Grant::blank` does.
macro_rules! blank_grants {
    () => {
        "UPDATE approval_grant SET body = json_remove(json_set(body, '$.summary', body ->> 'tool'), '$.reason')"
    };
}
pub(super) use blank_grants;

/// Deletes the texts of the grants that were given for a session.
pub(super) const BLANK_OF_SESSION: &str =
    concat!(blank_grants!(), " WHERE coalesce(body ->> 'tenant', 'default') = ?1 AND body ->> 'session' = ?2");

/// The grant as it was given and its revocation, both as JSON.
pub(super) type Row = (String, Option<String>);

/// The revocation of a grant.
pub(super) struct RevokeGrant {
    pub(super) grant: GrantId,
    pub(super) revoked: Revoked,
}

/// The active grants of a tenant for any of these definitions, in this conversation or in all.
pub(super) fn covering<'a>(context: &'a GrantContext, tools: &[GuardedTool]) -> Query<'a> {
    let mut definitions: Vec<_> = tools.iter().map(|guarded| guarded.definition.as_str()).collect();
    definitions.sort_unstable();
    definitions.dedup();
    let query = query(COVERING).bind(serde_json::json!(definitions).to_string());
    query.bind(context.tenant.as_str()).bind(context.session.as_str())
}

/// Looks up grants by id.
pub(super) fn named(grants: &[GrantId]) -> Query<'static> {
    query(NAMED).bind(serde_json::json!(grants).to_string())
}

/// The query for a page of grants, newest first.
pub(super) fn select(filter: &GrantFilter, now: Timestamp) -> Query<'_> {
    let GrantFilter { id, tenant, agent, session, tool, ended, after, limit } = filter;
    // SQLite finds the ids of a page in the tenant's index alone, and reads only their rows.
    let index = if id.is_none() && tenant.is_some() { " INDEXED BY approval_grant_by_tenant" } else { "" };
    let mut query = query("SELECT given.body, given.revoked FROM (SELECT id FROM approval_grant");
    query.push(index).push(" WHERE true");
    if let Some(id) = id {
        query.push(" AND id = ").push_bind(id.as_str());
    }
    if let Some(tenant) = tenant {
        // The body holds the tenant, except for the default tenant.
        query.push(" AND coalesce(body ->> 'tenant', 'default') = ").push_bind(tenant.as_str());
    }
    if let Some(agent) = agent {
        query.push(" AND body ->> 'agent' = ").push_bind(agent.as_str());
    }
    if let Some(session) = session {
        query.push(" AND (body ->> 'session' IS NULL OR body ->> 'session' = ").push_bind(session.as_str()).push(")");
    }
    if let Some(tool) = tool {
        query.push(" AND body ->> 'tool' = ").push_bind(tool.as_str());
    }
    if !ended {
        // Timestamps have as few digits as they need. Without the trailing `Z` they sort by time.
        let now = now.to_string();
        query.push(" AND revoked IS NULL AND (body ->> 'expires_at' IS NULL OR rtrim(body ->> 'expires_at', 'Z') > ");
        query.push_bind(now.trim_end_matches('Z').to_owned()).push(")");
    }
    page::restrict(&mut query, "approval_grant", Order::NewestFirst, after.as_ref().map(GrantId::as_str), *limit);
    query.push(") AS page CROSS JOIN approval_grant AS given ON given.id = page.id");
    query.push(" ORDER BY given.created_at DESC, given.id DESC");
    query
}

/// A timestamp with all its digits. Timestamps with fewer digits do not sort by time.
fn sortable(at: Timestamp) -> String {
    format!("{at:.9}")
}

/// Parses rows.
pub(super) fn read(rows: Vec<Row>) -> Result<Vec<Grant>, StoreError> {
    let unreadable = |error: serde_json::Error| StoreError::Corrupt(format!("a grant is unreadable: {error}"));
    let each = rows.into_iter().map(|(body, revoked)| {
        let grant: Grant = serde_json::from_str(&body).map_err(unreadable)?;
        let revoked = revoked.map(|revoked| serde_json::from_str(&revoked)).transpose().map_err(unreadable)?;
        Ok(Grant { revoked, ..grant })
    });
    each.collect()
}

impl Write for Grant {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        let body = serde_json::to_string(self).map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
        let grant = query(GRANT).bind(self.id.as_str()).bind(&self.definition);
        grant.bind(sortable(self.created_at)).bind(body).execute(db).map(drop)
    }
}

impl Write for RevokeGrant {
    type Answer = Vec<Row>;

    fn apply(&self, db: &Connection) -> Result<Vec<Row>, Error> {
        let revoked =
            serde_json::to_string(&self.revoked).map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
        query(REVOKE).bind(self.grant.as_str()).bind(revoked).all(db)
    }
}
