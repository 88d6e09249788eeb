//! Write check: a small test write, for readiness checks of a store that has not written recently.

use rusqlite::{Connection, Error};
use toolgate_ports::StoreError;

use super::health::WriteHealth;
use super::query::query;
use super::units::now_ms;
use super::writer::{Write, Writer};

const WRITE: &str = concat!(
    "INSERT INTO write_check (id, checked_at, filler) VALUES (1, ",
    now_ms!(),
    ", zeroblob(?1)) ON CONFLICT (id) DO UPDATE SET checked_at = excluded.checked_at, filler = excluded.filler"
);

/// Whether the file is writable. Writes to it at most every few seconds, and only if the store has not written itself.
pub(super) async fn check(health: &WriteHealth, writer: &Writer) -> Result<(), StoreError> {
    if let Some(filler) = health.due()? {
        writer.make(Check { filler }).await?;
        health.checked();
    }
    Ok(())
}

/// A write of this many bytes to the row reserved for checks.
struct Check {
    filler: i64,
}

impl Write for Check {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        query(WRITE).bind(self.filler).execute(db).map(drop)
    }
}
