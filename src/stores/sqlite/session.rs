//! Sessions, and the segments of their conversations. The append that creates a run claims its session in the same
//! transaction.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use rusqlite::{Connection, Error, Row};
use serde::{Deserialize, Serialize};
use toolgate_core::chat::Usage;
use toolgate_core::id::{Principal, RunId, SessionId, Tenant};
use toolgate_core::run::{Segment, Status};
use toolgate_ports::{
    Append, AppendError, SessionClaim, SessionFilter, SessionHead, SessionRow, SessionRuntime, SessionSaved,
    SessionSettings, SessionStore, StoreError,
};

use super::SqliteStore;
use super::grant::BLANK_OF_SESSION;
use super::json::to_json;
use super::purge::UNQUOTE_SESSION;
use super::query::{FromRow, Query, query};
use super::read::{self, LISTED_BY_DEFAULT, usage_of};
use super::units::{integer, moment, nanos};
use super::writer::Write;

/// The columns of a session, with the status of its head and the length of the head's journal.
macro_rules! columns {
    () => {
        "session.tenant, session.id, session.agent, session.principal, session.head, session.version, session.runs,
        session.title, session.created_at, session.updated_at, session.deleted_at, session.body, run.status, run.version AS length,
        run.usage AS head_usage, run.result ->> '$.iterations' AS head_iterations, run.updated_at AS used_at"
    };
}

/// One session.
pub(super) const FIND: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM session LEFT JOIN run ON run.id = session.head WHERE session.tenant = ?1 AND session.id = ?2"
);

/// Creates a row, unless the predecessor of its head is live.
const CREATE: &str = "INSERT INTO session
        (tenant, id, version, agent, principal, head, runs, title, created_at, updated_at, body)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
    WHERE NOT EXISTS (SELECT 1 FROM run WHERE id = ?12 AND tenant = ?1 AND status IN ('running', 'pending'))
    ON CONFLICT DO NOTHING";

/// Replaces a row at the version before, unless it is deleted, or its head or the predecessor of its next head is live.
pub(super) const REPLACE: &str = "UPDATE session SET version = ?3, agent = ?4, principal = ?5, head = ?6, runs = ?7,
        title = ?8, created_at = ?9, updated_at = ?10, body = ?11
    WHERE tenant = ?1 AND id = ?2 AND version = ?3 - 1 AND deleted_at IS NULL AND NOT EXISTS
        (SELECT 1 FROM run WHERE id IN (session.head, ?12) AND tenant = ?1 AND status IN ('running', 'pending'))";

/// Replaces what a caller may change, in a row at the version before, unless it is deleted. Deletes it unless it has a
/// live run, as its head or beside the conversation.
const CHANGE: &str = "UPDATE session SET version = ?3, title = ?8, updated_at = ?10, deleted_at = ?13,
        body = json_set(body, '$.settings', ?11 -> '$.settings')
    WHERE tenant = ?1 AND id = ?2 AND version = ?3 - 1 AND deleted_at IS NULL AND (?13 IS NULL OR NOT EXISTS
        (SELECT 1 FROM run WHERE tenant = ?1 AND session = ?2 AND status IN ('running', 'pending') AND purged_at IS NULL))";

/// Stores the segment of a run once, and not after the deletion of the run.
const KEEP: &str = "INSERT INTO segment (tenant, run, body, messages) SELECT ?1, ?2, ?3, ?4
    WHERE NOT EXISTS (SELECT 1 FROM run WHERE id = ?2 AND tenant = ?1 AND purged_at IS NOT NULL)
    ON CONFLICT DO NOTHING";

/// The runs of a conversation in any order, with their predecessors and the lengths of their segments. `UNION` ends a walk in
/// a circle.
pub(super) const LENGTHS: &str = "WITH RECURSIVE chain (run) AS (
        VALUES (?2)
        UNION SELECT run.predecessor FROM chain CROSS JOIN run ON run.id = chain.run AND run.tenant = ?1
            WHERE run.predecessor IS NOT NULL)
    SELECT chain.run, run.predecessor, segment.messages FROM chain
        LEFT JOIN run ON run.id = chain.run AND run.tenant = ?1
        LEFT JOIN segment ON segment.tenant = ?1 AND segment.run = chain.run";

/// The segments of the runs in a JSON array of ids.
pub(super) const SEGMENTS: &str = "SELECT segment.run, segment.body FROM json_each(?2) AS asked
    CROSS JOIN segment ON segment.tenant = ?1 AND segment.run = asked.value";

#[async_trait]
impl SessionStore for SqliteStore {
    async fn session(&self, tenant: &Tenant, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        let row = self.lookups.optional(query(FIND).bind(tenant.as_str()).bind(id.as_str())).await?;
        row.map(StoredSession::read).transpose()
    }

    async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        self.readers.all(select(filter)).await?.into_iter().map(StoredSession::read).collect()
    }

    async fn save_session(&self, expected: u64, row: &SessionRow) -> Result<SessionSaved, StoreError> {
        let version = expected.saturating_add(1);
        let row = SessionRow { version, ..row.clone() };
        self.writer.make(SaveSession(SessionWrite::new(row, None)?)).await?
    }

    async fn segment_lengths(&self, tenant: &Tenant, run: &RunId) -> Result<Vec<(RunId, Option<u64>)>, StoreError> {
        let rows: Vec<(String, Option<String>, Option<i64>)> =
            self.lookups.all(query(LENGTHS).bind(tenant.as_str()).bind(run.as_str())).await?;
        let mut runs: BTreeMap<_, _> =
            rows.into_iter().map(|(run, predecessor, messages)| (run, (predecessor, messages))).collect();
        let mut links = Vec::with_capacity(runs.len());
        let mut next = Some(run.as_str().to_owned());
        while let Some((run, (predecessor, messages))) = next.and_then(|run| runs.remove_entry(&run)) {
            links.push((run.into(), messages.map(|messages| u64::try_from(messages).unwrap_or_default())));
            next = predecessor;
        }
        links.reverse();
        Ok(links)
    }

    async fn segments(&self, tenant: &Tenant, runs: &[RunId]) -> Result<Vec<(RunId, Segment)>, StoreError> {
        let query = query(SEGMENTS).bind(tenant.as_str()).bind(serde_json::json!(runs).to_string());
        let rows: Vec<(String, String)> = self.lookups.all(query).await?;
        let read = |(run, segment): (String, String)| {
            let segment = parsed(format_args!("the segment of run {run}"), &segment)?;
            Ok((run.into(), segment))
        };
        rows.into_iter().map(read).collect()
    }
}

/// The session, if it was deleted.
pub(super) fn deleted(
    db: &Connection,
    tenant: &Tenant,
    id: &SessionId,
) -> Result<Result<Option<SessionRow>, StoreError>, Error> {
    let row: Option<StoredSession> = query(FIND).bind(tenant.as_str()).bind(id.as_str()).optional(db)?;
    Ok(row.filter(|row| row.deleted_at.is_some()).map(StoredSession::read).transpose())
}

/// The query for a page of sessions, newest first.
pub(super) fn select(filter: &SessionFilter) -> Query<'_> {
    let SessionFilter { tenant, agent, principal, before, limit } = filter;
    // SQLite finds the ids of a page in the tenant's index alone, and reads only their rows.
    let mut query = query(concat!("SELECT ", columns!()));
    query.push(
        " FROM (SELECT tenant, id FROM session INDEXED BY session_by_tenant WHERE deleted_at IS NULL AND tenant = ",
    );
    query.push_bind(tenant.as_str());
    if let Some(agent) = agent {
        query.push(" AND agent = ").push_bind(agent.as_str());
    }
    if let Some(principal) = principal {
        query.push(" AND principal = ").push_bind(principal.as_str());
    }
    if let Some((created_at, id)) = before {
        query.push(" AND (created_at, id) < (").push_bind(nanos(*created_at));
        query.push(", ").push_bind(id.as_str()).push(")");
    }
    let limit = if *limit == 0 { LISTED_BY_DEFAULT } else { *limit };
    query.push(" ORDER BY created_at DESC, id DESC LIMIT ").push_bind(integer(limit as u64));
    query.push(") AS page CROSS JOIN session ON session.tenant = page.tenant AND session.id = page.id");
    query.push(" LEFT JOIN run ON run.id = session.head ORDER BY session.created_at DESC, session.id DESC");
    query
}

/// The members of a session that no query uses.
#[derive(Serialize, Deserialize)]
struct Body {
    settings: SessionSettings,
    created_by: Option<String>,
    authors: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Usage::is_unknown")]
    usage: Usage,
    iterations: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runtime: Option<SessionRuntime>,
}

/// The head of a session as SQLite returns it.
struct StoredHead {
    run: String,
    status: String,
    length: i64,
    usage: Option<String>,
    iterations: Option<i64>,
    used_at: String,
}

/// A session as SQLite returns it.
struct StoredSession {
    tenant: String,
    id: String,
    agent: String,
    principal: Option<String>,
    head: Option<StoredHead>,
    version: i64,
    runs: i64,
    title: String,
    created_at: i64,
    updated_at: i64,
    deleted_at: Option<i64>,
    body: String,
}

impl FromRow for StoredSession {
    fn from_row(row: &Row<'_>) -> Result<Self, Error> {
        // A head without a row is none.
        let head = row.get::<_, Option<String>>("head")?.zip(row.get::<_, Option<String>>("status")?);
        let head = head.map(|(run, status)| {
            Ok::<_, Error>(StoredHead {
                run,
                status,
                length: row.get("length")?,
                usage: row.get("head_usage")?,
                iterations: row.get("head_iterations")?,
                used_at: row.get("used_at")?,
            })
        });
        Ok(Self {
            tenant: row.get("tenant")?,
            id: row.get("id")?,
            agent: row.get("agent")?,
            principal: row.get("principal")?,
            head: head.transpose()?,
            version: row.get("version")?,
            runs: row.get("runs")?,
            title: row.get("title")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
            deleted_at: row.get("deleted_at")?,
            body: row.get("body")?,
        })
    }
}

impl StoredSession {
    fn read(self) -> Result<SessionRow, StoreError> {
        let unreadable = |what: &str| StoreError::Corrupt(format!("session {} has {what}", self.id));
        let count = |count: i64| u64::try_from(count).map_err(|_| unreadable(&format!("the impossible count {count}")));
        let time = |nanos: i64| moment(nanos).ok_or_else(|| unreadable(&format!("`{nanos}` for a time")));
        let head = self.head.map(|StoredHead { run, status, length, usage, iterations, used_at }| {
            let known = Status::parse(&status);
            let status = known.ok_or_else(|| unreadable(&format!("a head with the unknown status `{status}`")))?;
            let usage = usage.map_or(Ok(Usage::default()), |usage| usage_of(&run, &usage))?;
            let run = RunId::from(run);
            let updated_at = read::time(&run, &used_at)?;
            let (version, iterations) = (count(length)?, count(iterations.unwrap_or(0))?);
            Ok(SessionHead { run, status, version, usage, iterations, updated_at })
        });
        let Body { settings, created_by, authors, usage, iterations, runtime } =
            parsed(format_args!("session {}", self.id), &self.body)?;
        Ok(SessionRow {
            head: head.transpose()?,
            version: count(self.version)?,
            runs: count(self.runs)?,
            created_at: time(self.created_at)?,
            updated_at: time(self.updated_at)?,
            deleted_at: self.deleted_at.map(time).transpose()?,
            id: self.id.as_str().into(),
            tenant: self.tenant.into(),
            agent: self.agent.into(),
            principal: self.principal.map(Principal::from),
            title: self.title,
            settings,
            created_by,
            authors,
            usage,
            iterations,
            runtime,
        })
    }
}

fn parsed<T: serde::de::DeserializeOwned>(what: impl std::fmt::Display, json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|error| StoreError::Corrupt(format!("{what} is unreadable: {error}")))
}

/// A row to write over the version before. Version 1 creates it.
struct SessionWrite {
    row: SessionRow,
    body: String,
    /// The predecessor of its head.
    predecessor: Option<RunId>,
}

impl SessionWrite {
    fn new(row: SessionRow, predecessor: Option<RunId>) -> Result<Self, StoreError> {
        let SessionRow { settings, created_by, authors, usage, iterations, runtime, .. } = row.clone();
        let body = Body { settings, created_by, authors, usage, iterations, runtime };
        let body = to_json(format_args!("session {}", row.id), &body)?;
        Ok(Self { row, body, predecessor })
    }

    /// Executes `CREATE` for version 1, and otherwise the statement. Returns whether it wrote the row.
    fn execute(&self, statement: &'static str, db: &Connection) -> Result<bool, Error> {
        let Self { row, body, predecessor } = self;
        let statement = if row.version == 1 { CREATE } else { statement };
        let written = query(statement)
            .bind(row.tenant.as_str())
            .bind(row.id.as_str())
            .bind(integer(row.version))
            .bind(row.agent.as_str())
            .bind(row.principal.as_ref().map(Principal::as_str))
            .bind(row.head.as_ref().map(|head| head.run.as_str()))
            .bind(integer(row.runs))
            .bind(&row.title)
            .bind(nanos(row.created_at))
            .bind(nanos(row.updated_at))
            .bind(body)
            .bind(predecessor.as_ref().map(RunId::as_str));
        let written = if statement == CHANGE { written.bind(row.deleted_at.map(nanos)) } else { written };
        Ok(written.execute(db)? == 1)
    }

    /// The row as it is stored.
    fn current(&self, db: &Connection) -> Result<Result<Option<Box<SessionRow>>, StoreError>, Error> {
        let find = query(FIND).bind(self.row.tenant.as_str()).bind(self.row.id.as_str());
        let row: Option<StoredSession> = find.optional(db)?;
        Ok(row.map(|row| row.read().map(Box::new)).transpose())
    }
}

/// A session that a caller creates or changes.
struct SaveSession(SessionWrite);

impl Write for SaveSession {
    type Answer = Result<SessionSaved, StoreError>;

    fn apply(&self, db: &Connection) -> Result<Self::Answer, Error> {
        let Self(write) = self;
        if write.execute(CHANGE, db)? {
            if write.row.deleted_at.is_some() {
                for statement in [UNQUOTE_SESSION, BLANK_OF_SESSION] {
                    query(statement).bind(write.row.tenant.as_str()).bind(write.row.id.as_str()).execute(db)?;
                }
            }
            return Ok(Ok(SessionSaved::Saved));
        }
        Ok(write.current(db)?.map(SessionSaved::Changed))
    }
}

/// A session's next head, and the segment of the run before it.
pub(super) struct ClaimSession {
    write: SessionWrite,
    /// The segment as JSON, and the number of its messages.
    segment: Option<(String, u64)>,
}

impl ClaimSession {
    /// The claim of an append, as JSON.
    pub(super) fn new(append: &Append) -> Result<Option<Self>, StoreError> {
        let Some(claim) = &append.session else { return Ok(None) };
        let SessionClaim { row, segment, .. } = &**claim;
        let what = format_args!("the segment before run {}", append.run);
        let written = |segment: &Segment| Ok::<_, StoreError>((to_json(what, segment)?, segment.messages.len() as u64));
        let segment = segment.as_ref().map(written).transpose()?;
        Ok(Some(Self { write: SessionWrite::new(row.clone(), append.row.predecessor.clone())?, segment }))
    }
}

impl Write for ClaimSession {
    type Answer = Result<(), AppendError>;

    fn apply(&self, db: &Connection) -> Result<Self::Answer, Error> {
        let Self { write, segment } = self;
        if !write.execute(REPLACE, db)? {
            let current = write.current(db)?;
            return Ok(Err(current.map_or_else(AppendError::from, |current| AppendError::SessionChanged { current })));
        }
        // The successor stores the segment: a run that is never continued is stored once (decision 0037).
        if let (Some((segment, messages)), Some(predecessor)) = (segment, &write.predecessor) {
            let keep = query(KEEP).bind(write.row.tenant.as_str()).bind(predecessor.as_str()).bind(segment);
            keep.bind(integer(*messages)).execute(db)?;
        }
        Ok(Ok(()))
    }
}
