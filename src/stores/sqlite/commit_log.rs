//! Commit log: triggers of the schema write it, in the transaction of the append.

use async_trait::async_trait;
use rusqlite::{Error, Row};
use toolgate_core::id::Tenant;
use toolgate_ports::{Commit, CommitLog, StoreError};

use super::SqliteStore;
use super::query::{FromRow, query};
use super::units::integer;

pub(super) const COMMITS: &str = "SELECT log.position, log.run, log.first, log.length, run.agent, run.session
    FROM commit_log AS log CROSS JOIN run ON run.id = log.run
    WHERE log.tenant = ?1 AND log.position > ?2 ORDER BY log.position LIMIT ?3";
pub(super) const LATEST: &str =
    "SELECT (SELECT coalesce(max(position), 0) FROM commit_log WHERE tenant = asked.value) FROM json_each(?1) AS asked";

#[async_trait]
impl CommitLog for SqliteStore {
    async fn commits(&self, tenant: &Tenant, after: u64, limit: usize) -> Result<Vec<Commit>, StoreError> {
        let select = query(COMMITS).bind(tenant.as_str()).bind(integer(after)).bind(integer(limit as u64));
        self.lookups.all(select).await
    }

    async fn latest_commits(&self, tenants: &[Tenant]) -> Result<Vec<u64>, StoreError> {
        let rows: Vec<(i64,)> = self.lookups.all(query(LATEST).bind(serde_json::json!(tenants).to_string())).await?;
        Ok(rows.into_iter().map(|(latest,)| latest.unsigned_abs()).collect())
    }
}

impl FromRow for Commit {
    fn from_row(row: &Row<'_>) -> Result<Self, Error> {
        let text = |column| row.get::<_, String>(column);
        let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(Self {
            position: number("position")?,
            run: text("run")?.into(),
            agent: text("agent")?.into(),
            session: text("session")?.into(),
            first: number("first")?,
            length: number("length")?,
        })
    }
}
