//! Claims and lease renewals. Leases use the clock of the database, because its processes share that clock.

use std::time::Duration;

use rusqlite::{Connection, Error};
use toolgate_core::id::{NodeId, RunId};
use toolgate_ports::Claim;

use super::query::query;
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

pub(super) const ORPHANED: &str = orphaned!("?1");

/// The end of the lease of a running run, if another node has it.
pub(super) const LEASE: &str = "SELECT lease_until FROM run WHERE id = ?1 AND status = 'running' AND owner <> ?2";

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

impl Write for Claim {
    type Answer = Vec<RunId>;

    fn apply(&self, db: &Connection) -> Result<Vec<RunId>, Error> {
        if self.limit == 0 {
            return Ok(Vec::new());
        }
        let statement = query(if self.run.is_some() { CLAIM_ONE } else { CLAIM_ANY })
            .bind(self.owner.as_str())
            .bind(millis(self.lease));
        let statement = match &self.run {
            Some(run) => statement.bind(run.as_str()),
            None => statement.bind(integer(self.limit as u64)),
        };
        let mut ids: Vec<(String,)> = statement.all(db)?;
        // RETURNING guarantees no order.
        ids.sort_unstable();
        Ok(ids.into_iter().map(|(id,)| id.into()).collect())
    }
}

/// The renewal of an owner's leases, starting now.
pub(super) struct Renewal {
    pub(super) owner: NodeId,
    pub(super) runs: Vec<RunId>,
    /// The duration of the renewed leases.
    pub(super) lease: Duration,
}

impl Write for Renewal {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        let runs = serde_json::json!(self.runs).to_string();
        query(RENEW).bind(self.owner.as_str()).bind(millis(self.lease)).bind(runs).execute(db).map(drop)
    }
}
