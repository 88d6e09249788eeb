//! What readers ask, and how rows become our types again. A row that cannot is named, and spoils only the answer it
//! belongs to.

use jiff::Timestamp;
use serde::Deserialize;
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite, SqlitePool};

use super::append::integer;
use crate::core::id::RunId;
use crate::core::run::{Event, Owes, Recorded, Status};
use crate::ports::{RunFilter, RunRow, StoreError};

/// The rows of one journal from a position on.
pub(super) const JOURNAL: &str = "SELECT seq, at, event FROM journal WHERE run = ?1 AND seq >= ?2 ORDER BY seq";

const LISTED_BY_DEFAULT: usize = 100;

/// A row of a journal: position, time, event.
pub(super) type JournalRow = (i64, String, String);

/// An index row: id, agent, session, status, version, title, created, updated; approvals, asked, due.
pub(super) type IndexRow = (String, String, String, String, i64, String, String, String, u32, Option<i64>, Option<i64>);

/// The rows of a journal from a position on, in order.
pub(super) async fn journal(db: &SqlitePool, run: &RunId, from: u64) -> Result<Vec<JournalRow>, sqlx::Error> {
    sqlx::query_as(JOURNAL).bind(run.as_str()).bind(integer(from)).fetch_all(db).await
}

/// The index rows that pass a filter, newest first.
pub(super) async fn index(db: &SqlitePool, filter: &RunFilter) -> Result<Vec<IndexRow>, sqlx::Error> {
    // Conditions that are not asked for are left out, so that SQLite can choose the index of one that is.
    let mut query = QueryBuilder::<Sqlite>::new(
        "SELECT id, agent, session, status, version, title, created_at, updated_at, approvals, asked_at, due_at \
         FROM run WHERE true",
    );
    if let Some(status) = filter.status {
        query.push(" AND status = ").push_bind(status.as_str());
    }
    if let Some(agent) = &filter.agent {
        query.push(" AND agent = ").push_bind(agent.as_str());
    }
    if let Some(session) = &filter.session {
        query.push(" AND session = ").push_bind(session.as_str());
    }
    if let Some(before) = &filter.before {
        query.push(" AND id < ").push_bind(before.as_str());
    }
    let limit = if filter.limit == 0 { LISTED_BY_DEFAULT } else { filter.limit };
    query.push(" ORDER BY id DESC LIMIT ").push_bind(integer(limit as u64));
    query.build_query_as().fetch_all(db).await
}

/// The fact that belongs at position `seq`.
pub(super) fn fact(run: &RunId, seq: u64, row: JournalRow) -> Result<Recorded, StoreError> {
    let (stored, at, event) = row;
    if stored != integer(seq) {
        return Err(StoreError::Corrupt(format!("event {seq} of run {run} is missing, the next one is {stored}")));
    }
    let unreadable = |what: String| {
        StoreError::Corrupt(format!(
            "event {seq} of run {run}, of type `{}`: {what}; a newer toolgate may have written it",
            type_of(&event)
        ))
    };
    let at = at.parse().map_err(|_| unreadable(format!("`{at}` is no time")))?;
    let event: Event = serde_json::from_str(&event).map_err(|error| unreadable(error.to_string()))?;
    Ok(Recorded { seq, at, event })
}

/// What an event says it is, if it says so.
fn type_of(event: &str) -> String {
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    serde_json::from_str(event).map_or_else(|_| "unknown".to_owned(), |typed: Typed| typed.r#type)
}

/// The index row as our type.
pub(super) fn listed(row: IndexRow) -> Result<RunRow, StoreError> {
    let (id, agent, session, status, version, title, created_at, updated_at, approvals, asked_at, due_at) = row;
    let unreadable = |what: &str| StoreError::Corrupt(format!("the index row of run {id} has {what}"));
    let time = |text: &str| text.parse::<Timestamp>().map_err(|_| unreadable(&format!("`{text}` for a time")));
    Ok(RunRow {
        status: Status::parse(&status).ok_or_else(|| unreadable(&format!("the unknown status `{status}`")))?,
        version: u64::try_from(version).map_err(|_| unreadable(&format!("the impossible version {version}")))?,
        created_at: time(&created_at)?,
        updated_at: time(&updated_at)?,
        id: id.as_str().into(),
        agent: agent.into(),
        session: session.into(),
        title,
        owes: Owes { approvals, asked_at: asked_at.and_then(moment), due_at: due_at.and_then(moment) },
    })
}

fn moment(nanos: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(nanos.into()).ok()
}
