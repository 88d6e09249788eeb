//! Numbers as SQLite stores them.

use std::time::Duration;

use jiff::Timestamp;

/// Unix milliseconds, in SQL.
macro_rules! now_ms {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}
pub(super) use now_ms;

/// A time as SQLite stores it for comparison. Text with different precision does not sort by time. Valid until 2262.
pub(super) fn nanos(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

/// The time of these nanoseconds, unless it is out of range.
pub(super) fn moment(nanos: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(nanos.into()).ok()
}

/// A position as SQLite stores it. No journal comes near the limit.
pub(super) fn integer(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

/// A lease in milliseconds, capped at a century so that the sum stays an integer.
pub(super) fn millis(lease: Duration) -> i64 {
    const CENTURY: i64 = 100 * 366 * 24 * 60 * 60 * 1000;
    i64::try_from(lease.as_millis()).unwrap_or(CENTURY).min(CENTURY)
}
