//! What readers ask, and how rows become our types again. A row that cannot is named, and spoils only the answer it
//! belongs to.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Deserialize;
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite, SqlitePool};

use super::append::integer;
use crate::core::id::RunId;
use crate::core::run::{Event, Recorded, Status};
use crate::ports::{ApprovalKey, RunFilter, RunRow, StoreError};

/// The rows of one journal from a position on.
pub(super) const JOURNAL: &str = "SELECT seq, at, event FROM journal WHERE run = ?1 AND seq >= ?2 ORDER BY seq";

/// The positions of the granted keys. `CROSS JOIN` makes SQLite look up each key instead of reading every grant.
pub(super) const GRANTED: &str = "SELECT asked.key FROM json_each(?1) AS asked CROSS JOIN approval_grant AS given
    ON given.session = asked.value ->> 0 AND given.tool = asked.value ->> 1 AND given.hash = asked.value ->> 2";

const LISTED_BY_DEFAULT: usize = 100;

/// A row of a journal: position, time, event.
pub(super) type JournalRow = (i64, String, String);

/// An index row: id, agent, session, status, version, title, created, updated.
pub(super) type IndexRow = (String, String, String, String, i64, String, String, String);

/// The rows of a journal from a position on, in order.
pub(super) async fn journal(db: &SqlitePool, run: &RunId, from: u64) -> Result<Vec<JournalRow>, sqlx::Error> {
    sqlx::query_as(JOURNAL).bind(run.as_str()).bind(integer(from)).fetch_all(db).await
}

/// The index rows that pass a filter, newest first.
pub(super) async fn index(db: &SqlitePool, filter: &RunFilter) -> Result<Vec<IndexRow>, sqlx::Error> {
    // Conditions that are not asked for are left out, so that SQLite can choose the index of one that is.
    let mut query = QueryBuilder::<Sqlite>::new(
        "SELECT id, agent, session, status, version, title, created_at, updated_at FROM run WHERE true",
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

/// The positions, within `keys`, of those that are granted.
pub(super) async fn granted(db: &SqlitePool, keys: &[ApprovalKey]) -> Result<HashSet<usize>, sqlx::Error> {
    let asked: Vec<_> = keys.iter().map(|key| [key.session.as_str(), key.tool.as_str(), key.hash.as_str()]).collect();
    let asked = serde_json::json!(asked).to_string();
    let found: Vec<i64> = sqlx::query_scalar(GRANTED).bind(asked).fetch_all(db).await?;
    Ok(found.into_iter().filter_map(|index| usize::try_from(index).ok()).collect())
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
    let (id, agent, session, status, version, title, created_at, updated_at) = row;
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
    })
}
