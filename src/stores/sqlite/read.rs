//! What readers ask, and how rows become our types again. A row that cannot is named, and spoils only the answer it
//! belongs to.

use jiff::Timestamp;
use serde::Deserialize;
use sqlx::sqlite::{Sqlite, SqlitePool, SqliteRow};
use sqlx::{FromRow, QueryBuilder, Row};

use super::append::{integer, nanos};
use crate::core::id::RunId;
use crate::core::run::{Event, Owes, Recorded, Status};
use crate::ports::{Owing, RunFilter, RunRow, StoreError};

/// The rows of one journal from a position on.
pub(super) const JOURNAL: &str = "SELECT seq, at, event FROM journal WHERE run = ?1 AND seq >= ?2 ORDER BY seq";

const LISTED_BY_DEFAULT: usize = 100;

/// A row of a journal: position, time, event.
pub(super) type JournalRow = (i64, String, String);

/// An index row as SQLite has it.
#[derive(Debug)]
pub(super) struct IndexRow {
    id: String,
    tenant: String,
    agent: String,
    session: String,
    status: String,
    version: i64,
    title: String,
    created_at: String,
    updated_at: String,
    owes: Owes,
    purged_at: Option<String>,
}

impl<'r> FromRow<'r, SqliteRow> for IndexRow {
    fn from_row(row: &'r SqliteRow) -> Result<Self, sqlx::Error> {
        let moment = |column| Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(column)?.and_then(moment));
        Ok(Self {
            id: row.try_get("id")?,
            tenant: row.try_get("tenant")?,
            agent: row.try_get("agent")?,
            session: row.try_get("session")?,
            status: row.try_get("status")?,
            version: row.try_get("version")?,
            title: row.try_get("title")?,
            created_at: row.try_get("created_at")?,
            updated_at: row.try_get("updated_at")?,
            owes: Owes {
                approvals: row.try_get("approvals")?,
                results: row.try_get("results")?,
                answers: row.try_get("answers")?,
                tasks: row.try_get("tasks")?,
                asked_at: moment("asked_at")?,
                due_at: moment("due_at")?,
            },
            purged_at: row.try_get("purged_at")?,
        })
    }
}

/// The rows of a journal from a position on, in order.
pub(super) async fn journal(db: &SqlitePool, run: &RunId, from: u64) -> Result<Vec<JournalRow>, sqlx::Error> {
    sqlx::query_as(JOURNAL).bind(run.as_str()).bind(integer(from)).fetch_all(db).await
}

/// The index rows that pass a filter, newest first.
pub(super) async fn index(db: &SqlitePool, filter: &RunFilter) -> Result<Vec<IndexRow>, sqlx::Error> {
    select(filter).build_query_as().fetch_all(db).await
}

/// What asks for them. Conditions that are not asked for are left out.
pub(super) fn select(filter: &RunFilter) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(
        "SELECT id, tenant, agent, session, status, version, title, created_at, updated_at, \
         approvals, results, answers, tasks, asked_at, due_at, purged_at FROM run",
    );
    // By itself SQLite takes the index that yields the order, and walks every pending run to find the few that are due.
    query.push(match (filter.due_by, filter.owing) {
        (Some(_), _) => " INDEXED BY run_by_due",
        (None, Some(Owing::Approval)) => " INDEXED BY run_by_approvals",
        (None, Some(Owing::Task)) => " INDEXED BY run_by_tasks",
        (None, None) => "",
    });
    query.push(" WHERE true");
    if let Some(run) = &filter.run {
        query.push(" AND id = ").push_bind(run.as_str());
    }
    if let Some(tenant) = &filter.tenant {
        query.push(" AND tenant = ").push_bind(tenant.as_str());
    }
    match filter.owing {
        Some(Owing::Approval) => drop(query.push(" AND approvals > 0")),
        Some(Owing::Task) => drop(query.push(" AND tasks > 0")),
        None => {}
    }
    if let Some(by) = filter.due_by {
        query.push(" AND due_at <= ").push_bind(nanos(by));
    }
    if let Some(status) = filter.status {
        query.push(" AND status = ").push_bind(status.as_str());
    }
    if let Some(agent) = &filter.agent {
        query.push(" AND agent = ").push_bind(agent.as_str());
    }
    if let Some(session) = &filter.session {
        query.push(" AND session = ").push_bind(session.as_str());
    }
    if !filter.purged {
        query.push(" AND purged_at IS NULL");
    }
    if let Some(before) = &filter.before {
        query.push(" AND id < ").push_bind(before.as_str());
    }
    let limit = if filter.limit == 0 { LISTED_BY_DEFAULT } else { filter.limit };
    query.push(" ORDER BY id DESC LIMIT ").push_bind(integer(limit as u64));
    query
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
    let IndexRow { id, tenant, agent, session, status, version, title, created_at, updated_at, owes, purged_at } = row;
    let unreadable = |what: &str| StoreError::Corrupt(format!("the index row of run {id} has {what}"));
    let named = RunId::from(id.as_str());
    let time = |text: &str| time(&named, text);
    Ok(RunRow {
        status: Status::parse(&status).ok_or_else(|| unreadable(&format!("the unknown status `{status}`")))?,
        version: u64::try_from(version).map_err(|_| unreadable(&format!("the impossible version {version}")))?,
        created_at: time(&created_at)?,
        updated_at: time(&updated_at)?,
        purged_at: purged_at.as_deref().map(time).transpose()?,
        id: id.as_str().into(),
        agent: agent.into(),
        session: session.into(),
        tenant: tenant.into(),
        title,
        owes,
    })
}

/// A time of an index row.
pub(super) fn time(run: &RunId, text: &str) -> Result<Timestamp, StoreError> {
    text.parse().map_err(|_| StoreError::Corrupt(format!("the index row of run {run} has `{text}` for a time")))
}

fn moment(nanos: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(nanos.into()).ok()
}
