//! Event log: the journal in the order of its positions. SQLite has one writer at a time, so events become visible in that
//! order.

use async_trait::async_trait;
use rusqlite::{Error, Row};
use toolgate_core::id::Tenant;
use toolgate_ports::{EventLog, LogPage, LoggedEvent, StoreError};

use super::SqliteStore;
use super::query::{FromRow, query};
use super::units::integer;

/// How many positions are looked through for a page, whichever tenants their events belong to.
const SCANNED: u64 = 4096;

pub(super) const EVENTS: &str = "SELECT log.position, log.run, log.seq, run.agent, run.session, NOT EXISTS
        (SELECT 1 FROM journal AS next WHERE next.position = log.position + 1 AND next.commit_id = log.commit_id) AS ends_append
    FROM journal AS log CROSS JOIN run ON run.id = log.run
    WHERE log.position > ?2 AND log.position <= ?3 AND run.tenant = ?1 ORDER BY log.position LIMIT ?4";
pub(super) const LAST: &str = "SELECT coalesce(max(position), 0) FROM journal";
pub(super) const TENANTS: &str = "SELECT run.tenant, max(log.position)
    FROM journal AS log CROSS JOIN run ON run.id = log.run WHERE log.position > ?1 GROUP BY run.tenant";

#[async_trait]
impl EventLog for SqliteStore {
    async fn logged(&self, tenant: &Tenant, after: u64, limit: usize) -> Result<LogPage, StoreError> {
        // Read first: what is visible afterwards is visible up to here.
        let last = self.last_position().await?;
        let end = after.saturating_add(SCANNED).min(last);
        if end <= after {
            return Ok(LogPage { events: Vec::new(), read_to: after });
        }
        let select = query(EVENTS).bind(tenant.as_str()).bind(integer(after)).bind(integer(end));
        let events: Vec<LoggedEvent> = self.lookups.all(select.bind(integer(limit as u64))).await?;
        let cut = events.last().filter(|_| events.len() >= limit).map(|event| event.position);
        Ok(LogPage { read_to: cut.unwrap_or(end), events })
    }

    async fn last_position(&self) -> Result<u64, StoreError> {
        let rows: Vec<(i64,)> = self.lookups.all(query(LAST)).await?;
        Ok(rows.first().map_or(0, |(last,)| last.unsigned_abs()))
    }

    async fn tenants_after(&self, position: u64) -> Result<Vec<(Tenant, u64)>, StoreError> {
        let rows: Vec<(String, i64)> = self.lookups.all(query(TENANTS).bind(integer(position))).await?;
        Ok(rows.into_iter().map(|(tenant, last)| (tenant.into(), last.unsigned_abs())).collect())
    }
}

impl FromRow for LoggedEvent {
    fn from_row(row: &Row<'_>) -> Result<Self, Error> {
        let text = |column| row.get::<_, String>(column);
        let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(Self {
            position: number("position")?,
            run: text("run")?.into(),
            agent: text("agent")?.into(),
            session: text("session")?.into(),
            seq: number("seq")?,
            ends_append: row.get("ends_append")?,
        })
    }
}
