//! Claims and lease renewals. Leases use the clock of the database, because its processes share that clock.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use toolgate_core::id::{NodeId, RunId};
use toolgate_ports::Claim;

use super::units::{integer, millis, now_ms};
use super::writer::Write;

/// Running runs without an owner, or with an expired lease, oldest first.
macro_rules! orphaned {
    ($limit:literal) => {
        concat!(
            "SELECT id FROM run WHERE status = 'running' AND (owner IS NULL OR lease_until <= ",
            now_ms!(),
            ") ORDER BY id LIMIT ",
            $limit
        )
    };
}

const ORPHANED: &str = orphaned!("?1");

const CLAIM_ANY: &str = concat!(
    "UPDATE run SET owner = ?1, lease_until = ",
    now_ms!(),
    " + ?2 WHERE id IN (",
    orphaned!("?3"),
    ") RETURNING id"
);

const CLAIM_ONE: &str = concat!(
    "UPDATE run SET owner = ?1, lease_until = ",
    now_ms!(),
    " + ?2
     WHERE id = ?3 AND status = 'running' AND (owner IS NULL OR owner = ?1 OR lease_until <= ",
    now_ms!(),
    ") RETURNING id"
);

const RENEW: &str = concat!(
    "UPDATE run SET lease_until = ",
    now_ms!(),
    " + ?2 WHERE owner = ?1 AND id IN (SELECT value FROM json_each(?3))"
);

/// Orphaned runs, oldest first.
pub(super) async fn orphaned(db: &SqlitePool, limit: usize) -> Result<Vec<RunId>, sqlx::Error> {
    let ids: Vec<String> = sqlx::query_scalar(ORPHANED).bind(integer(limit as u64)).fetch_all(db).await?;
    Ok(ids.into_iter().map(RunId::from).collect())
}

#[async_trait]
impl Write for Claim {
    type Answer = Vec<RunId>;

    async fn apply(&self, db: &mut SqliteConnection) -> Result<Vec<RunId>, sqlx::Error> {
        if self.limit == 0 {
            return Ok(Vec::new());
        }
        let statement = sqlx::query_scalar(if self.run.is_some() { CLAIM_ONE } else { CLAIM_ANY })
            .bind(self.owner.as_str())
            .bind(millis(self.lease));
        let statement = match &self.run {
            Some(run) => statement.bind(run.as_str()),
            None => statement.bind(integer(self.limit as u64)),
        };
        let mut ids: Vec<String> = statement.fetch_all(db).await?;
        // RETURNING guarantees no order.
        ids.sort_unstable();
        Ok(ids.into_iter().map(RunId::from).collect())
    }
}

/// The renewal of an owner's leases, starting now.
pub(super) struct Renewal {
    pub(super) owner: NodeId,
    pub(super) runs: Vec<RunId>,
    /// The duration of the renewed leases.
    pub(super) lease: Duration,
}

#[async_trait]
impl Write for Renewal {
    type Answer = ();

    async fn apply(&self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let runs = serde_json::json!(self.runs).to_string();
        sqlx::query(RENEW).bind(self.owner.as_str()).bind(millis(self.lease)).bind(runs).execute(db).await?;
        Ok(())
    }
}
