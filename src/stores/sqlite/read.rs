//! Read queries, and the conversion of rows into domain types. A row that cannot be converted is named in the error,
//! and fails only the query that reads it.

use jiff::Timestamp;
use rusqlite::{Connection, Error, Row};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::chat::Usage;
use toolgate_core::id::RunId;
use toolgate_core::run::{JournalEntry, PendingCounts, RunResult, Status, TriggerKind};
use toolgate_ports::{ListOrder, MetadataValue, PendingKind, RunFilter, RunPosition, RunRow, StoreError};

use super::query::{FromRow, Query, query};
use super::readers::Readers;
use super::toolset::{self, NamedToolsets, ToolsetStore};
use super::units::{integer, moment, nanos};

/// The rows of one journal, starting at a position.
pub(super) const JOURNAL: &str = "SELECT seq, at, event FROM journal WHERE run = ?1 AND seq >= ?2 ORDER BY seq";

/// The columns of an index row.
const COLUMNS: &str = "run.id, run.tenant, run.agent, run.session, run.status, run.version, run.title, run.created_at, \
    run.updated_at, run.predecessor, run.approvals, run.results, run.answers, run.tasks, run.asked_at, run.due_at, \
    run.usage, run.result, run.trigger_type, run.schedule, run.principal, run.metadata, run.purged_at";

pub(super) const LISTED_BY_DEFAULT: usize = 100;

/// A row of a journal: position, time, event.
pub(super) type JournalRow = (i64, String, String);

/// An index row as SQLite returns it.
#[derive(Debug)]
pub(super) struct IndexRow {
    id: String,
    tenant: String,
    agent: String,
    session: String,
    predecessor: Option<String>,
    trigger: Option<String>,
    schedule: Option<String>,
    principal: Option<String>,
    metadata: Option<String>,
    status: String,
    version: i64,
    title: String,
    created_at: String,
    updated_at: String,
    pending_counts: PendingCounts,
    usage: Option<String>,
    result: Option<String>,
    purged_at: Option<String>,
}

impl FromRow for IndexRow {
    fn from_row(row: &Row<'_>) -> Result<Self, Error> {
        let moment = |column| Ok::<_, Error>(row.get::<_, Option<i64>>(column)?.and_then(moment));
        Ok(Self {
            id: row.get("id")?,
            tenant: row.get("tenant")?,
            agent: row.get("agent")?,
            session: row.get("session")?,
            predecessor: row.get("predecessor")?,
            trigger: row.get("trigger_type")?,
            schedule: row.get("schedule")?,
            principal: row.get("principal")?,
            metadata: row.get("metadata")?,
            status: row.get("status")?,
            version: row.get("version")?,
            title: row.get("title")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
            pending_counts: PendingCounts {
                approvals: row.get("approvals")?,
                results: row.get("results")?,
                answers: row.get("answers")?,
                tasks: row.get("tasks")?,
                asked_at: moment("asked_at")?,
                due_at: moment("due_at")?,
            },
            usage: row.get("usage")?,
            result: row.get("result")?,
            purged_at: row.get("purged_at")?,
        })
    }
}

/// The positions of the runs in a JSON array of ids.
pub(super) const POSITIONS: &str = "SELECT run.id, run.version, run.purged_at IS NOT NULL
    FROM json_each(?1) AS asked CROSS JOIN run ON run.id = asked.value";

/// The positions of these runs.
pub(super) async fn positions(db: &Readers, runs: &[RunId]) -> Result<Vec<RunPosition>, StoreError> {
    let rows: Vec<(String, i64, bool)> = db.all(query(POSITIONS).bind(serde_json::json!(runs).to_string())).await?;
    let position = |(run, version, is_purged): (String, i64, bool)| RunPosition {
        run: run.into(),
        version: u64::try_from(version).unwrap_or_default(),
        is_purged,
    };
    Ok(rows.into_iter().map(position).collect())
}

/// The query for a page of index rows. It contains only the conditions that the filter sets.
pub(super) fn select(filter: &RunFilter) -> Query<'_> {
    let mut query = query("SELECT ");
    query.push(COLUMNS).push(" FROM ");
    match Lookup::new(filter) {
        Lookup::Row => {
            query.push("run");
            restrict(&mut query, filter);
        }
        Lookup::All(index) => {
            query.push("run").push(index.map(|index| format!(" INDEXED BY {index}")).unwrap_or_default());
            restrict(&mut query, filter);
            limit(&mut query, filter);
        }
        // SQLite finds the ids of the page in the index alone, and reads only their rows. Without this hint SQLite
        // would read the row of each run in the order of ids until the page is full.
        Lookup::Tenant(index) => {
            query.push("(");
            ids(&mut query, filter, index);
            query.push(") AS page CROSS JOIN run ON run.id = page.id ORDER BY page.id ").push(direction(filter));
        }
    }
    query
}

/// The ids of a page of a tenant. An index returns the runs of one status in the order of ids, so that several statuses
/// are as many pages, of which the first ids are taken.
fn ids<'a>(query: &mut Query<'a>, filter: &'a RunFilter, index: &str) {
    let part = |query: &mut Query<'a>, status| {
        query.push("SELECT id FROM run INDEXED BY ").push(index);
        restrict_to(query, filter, status);
        limit(query, filter);
    };
    if let [] | [_] = filter.statuses[..] {
        return part(query, &filter.statuses);
    }
    for (number, status) in filter.statuses.chunks(1).enumerate() {
        query.push(if number == 0 { "SELECT id FROM (" } else { " UNION ALL SELECT id FROM (" });
        part(query, status);
        query.push(")");
    }
    limit(query, filter);
}

/// The index that a filter uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lookup {
    /// One run, by the primary key.
    Row,
    /// The runs of one tenant, by an index that starts with the tenant and contains every column of the filter.
    Tenant(&'static str),
    /// The runs of all tenants: for the server's sweeps and for the command line.
    All(Option<&'static str>),
}

impl Lookup {
    fn new(filter: &RunFilter) -> Self {
        let RunFilter { tenant, statuses, agent, session, trigger, schedule, pending_kind, due_by, .. } = filter;
        let (status, principal) = (statuses.first(), filter.principal.as_ref());
        // Both conditions match few runs at any time, whatever their tenant.
        match (due_by, pending_kind) {
            _ if filter.run.is_some() => return Self::Row,
            (Some(_), _) => return Self::All(Some("run_by_due")),
            (None, Some(PendingKind::Task)) => return Self::All(Some("run_by_tasks")),
            (None, Some(PendingKind::Approval) | None) => {}
        }
        // One index for each filter, which finds a page alone (decision 0019).
        let of_tenant = match (pending_kind, session, agent, status) {
            (Some(_), ..) => "run_by_tenant_approvals",
            (None, Some(_), ..) => "run_by_tenant_session",
            (None, None, ..) if schedule.is_some() => "run_by_tenant_schedule",
            (None, None, ..) if trigger.is_some() => "run_by_tenant_trigger",
            (None, None, ..) if principal.is_some() => "run_by_tenant_principal",
            (None, None, Some(_), Some(_)) => "run_by_tenant_agent_status",
            (None, None, Some(_), None) => "run_by_tenant_agent",
            (None, None, None, Some(_)) => "run_by_tenant_status",
            (None, None, None, None) => "run_by_tenant",
        };
        let of_all = match (pending_kind, session, status, agent) {
            (Some(_), ..) => Some("run_by_approvals"),
            (None, Some(_), ..) => Some("run_by_session"),
            (None, None, Some(_), _) if statuses.len() > 1 => None,
            // Few runs are active; one agent may have most of the ended runs.
            (None, None, Some(status), Some(_)) if status.is_ended() => Some("run_by_agent"),
            (None, None, Some(_), _) => Some("run_by_status"),
            (None, None, None, Some(_)) => Some("run_by_agent"),
            (None, None, None, None) => None,
        };
        match tenant {
            // The indexes of a tenant exclude deleted runs. A run that waits for approval is never deleted.
            Some(_) if !filter.purged || pending_kind.is_some() => Self::Tenant(of_tenant),
            Some(_) | None => Self::All(of_all),
        }
    }
}

fn restrict<'a>(query: &mut Query<'a>, filter: &'a RunFilter) {
    restrict_to(query, filter, &filter.statuses);
}

/// The conditions of a filter, with these statuses in place of its own.
fn restrict_to<'a>(query: &mut Query<'a>, filter: &'a RunFilter, statuses: &[Status]) {
    query.push(" WHERE true");
    if let Some(run) = &filter.run {
        query.push(" AND id = ").push_bind(run.as_str());
    }
    if let Some(tenant) = &filter.tenant {
        query.push(" AND tenant = ").push_bind(tenant.as_str());
    }
    match filter.pending_kind {
        Some(PendingKind::Approval) => drop(query.push(" AND approvals > 0")),
        Some(PendingKind::Task) => drop(query.push(" AND tasks > 0")),
        None => {}
    }
    if let Some(by) = filter.due_by {
        query.push(" AND due_at <= ").push_bind(nanos(by));
    }
    match statuses {
        [] => {}
        [status] => drop(query.push(" AND status = ").push_bind(status.as_str())),
        [first, others @ ..] => {
            query.push(" AND status IN (").push_bind(first.as_str());
            for status in others {
                query.push(", ").push_bind(status.as_str());
            }
            query.push(")");
        }
    }
    if let Some(agent) = &filter.agent {
        query.push(" AND agent = ").push_bind(agent.as_str());
    }
    if let Some(session) = &filter.session {
        query.push(" AND session = ").push_bind(session.as_str());
    }
    if let Some(trigger) = filter.trigger {
        query.push(" AND trigger_type = ").push_bind(trigger.as_str());
    }
    if let Some(schedule) = &filter.schedule {
        query.push(" AND schedule = ").push_bind(schedule.as_str());
    }
    if let Some(principal) = &filter.principal {
        query.push(" AND principal = ").push_bind(principal.as_str());
    }
    for (name, value) in &filter.metadata {
        query.push(" AND EXISTS (SELECT 1 FROM json_each(run.metadata) AS member WHERE member.key = ").push_bind(name);
        match value {
            MetadataValue::Text(text) => query.push(" AND member.type = 'text' AND member.value = ").push_bind(text),
            MetadataValue::Integer(number) => {
                query.push(" AND member.type = 'integer' AND member.value = ").push_bind(*number)
            }
            MetadataValue::Bool(true) => query.push(" AND member.type = 'true'"),
            MetadataValue::Bool(false) => query.push(" AND member.type = 'false'"),
        }
        .push(")");
    }
    if let Some(text) = &filter.title {
        query.push(" AND instr(lower(title), lower(").push_bind(text).push(")) > 0");
    }
    // Without their last letter, times in RFC 3339 compare as texts, whatever the length of their fractions.
    if let Some(from) = filter.created_from {
        query.push(" AND rtrim(created_at, 'Z') >= rtrim(").push_bind(from.to_string()).push(", 'Z')");
    }
    if let Some(before) = filter.created_before {
        query.push(" AND rtrim(created_at, 'Z') < rtrim(").push_bind(before.to_string()).push(", 'Z')");
    }
    // A run that waits for approval is not deleted, and the index of such runs does not contain `purged_at`.
    if !filter.purged && filter.pending_kind != Some(PendingKind::Approval) {
        query.push(" AND purged_at IS NULL");
    }
    if let Some(before) = &filter.before {
        query.push(" AND id < ").push_bind(before.as_str());
    }
    if let Some(after) = &filter.after {
        query.push(" AND id > ").push_bind(after.as_str());
    }
}

fn direction(filter: &RunFilter) -> &'static str {
    match filter.order {
        ListOrder::NewestFirst => "DESC",
        ListOrder::OldestFirst => "ASC",
    }
}

fn limit(query: &mut Query<'_>, filter: &RunFilter) {
    let limit = if filter.limit == 0 { LISTED_BY_DEFAULT } else { filter.limit };
    query.push(" ORDER BY id ").push(direction(filter)).push(" LIMIT ").push_bind(integer(limit as u64));
}

/// The rows of a journal from a position on, and the toolsets that they name, in one transaction: a deletion removes both.
pub(super) fn journal(
    db: &Connection,
    run: &RunId,
    from: u64,
    toolsets: &ToolsetStore,
) -> Result<(Vec<JournalRow>, Result<NamedToolsets, StoreError>), Error> {
    let snapshot = db.unchecked_transaction()?;
    let rows: Vec<JournalRow> = query(JOURNAL).bind(run.as_str()).bind(integer(from)).all(&snapshot)?;
    let toolsets = toolsets.load(&snapshot, run, rows.iter().map(|(_, _, event)| event.as_str()))?;
    Ok((rows, toolsets))
}

/// The event at position `seq`.
pub(super) fn fact(
    run: &RunId,
    seq: u64,
    row: JournalRow,
    toolsets: &NamedToolsets,
) -> Result<JournalEntry, StoreError> {
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
    let at = at.parse().map_err(|_| unreadable(format!("`{at}` is not a timestamp")))?;
    let event = match toolset::listed(&event, toolsets) {
        Some(listed) => listed,
        None => serde_json::from_str(&event).map_err(|error| unreadable(error.to_string()))?,
    };
    Ok(JournalEntry { seq, at, event })
}

/// The `type` of an event's JSON, if it has one.
fn type_of(event: &str) -> String {
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    serde_json::from_str(event).map_or_else(|_| "unknown".to_owned(), |typed: Typed| typed.r#type)
}

/// Parses an index row.
pub(super) fn listed(row: IndexRow) -> Result<RunRow, StoreError> {
    let IndexRow {
        id,
        tenant,
        agent,
        session,
        predecessor,
        trigger,
        schedule,
        principal,
        metadata,
        status,
        version,
        title,
        created_at,
        updated_at,
        pending_counts,
        usage,
        result,
        purged_at,
    } = row;
    let unreadable = |what: &str| StoreError::Corrupt(format!("the index row of run {id} has {what}"));
    let named = RunId::from(id.as_str());
    let time = |text: &str| time(&named, text);
    let parsed = |trigger: &str| {
        TriggerKind::parse(trigger).ok_or_else(|| unreadable(&format!("the unknown trigger `{trigger}`")))
    };
    Ok(RunRow {
        status: Status::parse(&status).ok_or_else(|| unreadable(&format!("the unknown status `{status}`")))?,
        version: u64::try_from(version).map_err(|_| unreadable(&format!("the impossible version {version}")))?,
        created_at: time(&created_at)?,
        updated_at: time(&updated_at)?,
        purged_at: purged_at.as_deref().map(time).transpose()?,
        id: id.as_str().into(),
        agent: agent.into(),
        session: session.into(),
        predecessor: predecessor.map(RunId::from),
        trigger: trigger.map(|trigger| parsed(&trigger)).transpose()?,
        schedule,
        tenant: tenant.into(),
        principal: principal.map(Into::into),
        metadata: metadata.map_or(Ok(Map::new()), |metadata| metadata_of(&id, &metadata))?,
        title,
        pending_counts,
        usage: usage.map_or(Ok(Usage::default()), |usage| usage_of(&id, &usage))?,
        result: result.map(|result| result_of(&id, &result)).transpose()?,
        is_interrupted: false,
    })
}

fn metadata_of(run: &str, json: &str) -> Result<Map<String, Value>, StoreError> {
    serde_json::from_str(json)
        .map_err(|error| StoreError::Corrupt(format!("the index row of run {run} has unreadable metadata: {error}")))
}

/// Parses the usage of a run.
pub(super) fn usage_of(run: &str, json: &str) -> Result<Usage, StoreError> {
    serde_json::from_str(json)
        .map_err(|error| StoreError::Corrupt(format!("the index row of run {run} has an unreadable usage: {error}")))
}

fn result_of(run: &str, json: &str) -> Result<RunResult, StoreError> {
    serde_json::from_str(json)
        .map_err(|error| StoreError::Corrupt(format!("the index row of run {run} has an unreadable result: {error}")))
}

/// Parses a time of an index row.
pub(super) fn time(run: &RunId, text: &str) -> Result<Timestamp, StoreError> {
    text.parse().map_err(|_| StoreError::Corrupt(format!("the index row of run {run} has `{text}` for a time")))
}
