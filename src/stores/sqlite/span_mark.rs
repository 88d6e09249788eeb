//! Span marks. Their leases use the clock of the database, as those of runs do.

use rusqlite::{Connection, Error};
use serde_json::json;
use toolgate_ports::{ClaimedSpans, SpanClaim, SpanMark};

use super::query::query;
use super::units::{integer, millis, now_ms};
use super::writer::Write;

const CLAIM: &str = concat!(
    "UPDATE run SET spans_until = ",
    now_ms!(),
    " + ?2 WHERE id = ?1 AND spans_sent IS NOT NULL AND (spans_sent >= ?3 OR ?4 OR spans_until <= ",
    now_ms!(),
    ") RETURNING spans_sent"
);

const IS_MARKED: &str = "SELECT EXISTS (SELECT 1 FROM run WHERE id = ?1 AND spans_sent IS NOT NULL)";

/// Runs, their marks and the durations of their leases, as one JSON array: one statement for all.
const MARK: &str = concat!(
    "UPDATE run SET spans_sent = max(coalesce(run.spans_sent, 0), mark.value ->> 1), spans_until = ",
    now_ms!(),
    " + (mark.value ->> 2) FROM json_each(?1) AS mark WHERE run.id = mark.value ->> 0"
);

pub(super) const UNSENT: &str = concat!(
    "SELECT id FROM run WHERE spans_sent < version AND status <> 'running' AND purged_at IS NULL AND spans_until <= ",
    now_ms!(),
    " AND id > ?1 ORDER BY id LIMIT ?2"
);

impl Write for SpanClaim {
    type Answer = ClaimedSpans;

    fn apply(&self, db: &Connection) -> Result<ClaimedSpans, Error> {
        let claim = query(CLAIM).bind(self.run.as_str()).bind(millis(self.lease)).bind(integer(self.at));
        if let Some((sent,)) = claim.bind(self.is_abandoned).optional::<(i64,)>(db)? {
            return Ok(ClaimedSpans::From(sent.unsigned_abs()));
        }
        let (is_marked,) = query(IS_MARKED).bind(self.run.as_str()).one::<(bool,)>(db)?;
        Ok(if is_marked { ClaimedSpans::Held } else { ClaimedSpans::Unmarked })
    }
}

/// The new marks of several runs.
pub(super) struct MarkSpans(pub(super) Vec<SpanMark>);

impl Write for MarkSpans {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        let marks = self.0.iter().map(|mark| json!([mark.run, mark.sent, millis(mark.lease)]));
        query(MARK).bind(json!(marks.collect::<Vec<_>>()).to_string()).execute(db).map(drop)
    }
}
