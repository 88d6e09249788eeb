//! Append: claims the session of a new run, moves the index row from `at` to its new version if it is at `at`, then
//! inserts the events.

use std::sync::Arc;

use rusqlite::{Connection, Error};
use toolgate_core::id::{NodeId, Principal, RunId};
use toolgate_core::run::{Event, TriggerKind};
use toolgate_ports::{Append, AppendError, QuotaExceeded, Quotas, RunRow, SPAN_LEASE, StoreError, counted_caller};
use uuid::Uuid;

use super::day_usage::{AddedUsage, CountedAppend};
use super::json::to_json;
use super::query::query;
use super::session::{self, ClaimSession};
use super::toolset::{StoredToolset, ToolsetStore};
use super::units::{integer, millis, nanos, now_ms};
use super::writer::Write;

const CREATE: &str = concat!(
    "INSERT INTO run (id, agent, session, status, version, title, created_at, updated_at, owner, lease_until,
        approvals, asked_at, due_at, results, answers, tasks, tenant, predecessor, usage, result,
        trigger_type, schedule, principal, metadata, spans_sent, spans_until, started_by)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
        CASE WHEN ?4 = 'running' THEN ?9 END,
        CASE WHEN ?4 = 'running' AND ?9 IS NOT NULL THEN ",
    now_ms!(),
    " + ?10 END, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ",
    now_ms!(),
    " + ?26, ?27)
     ON CONFLICT (id) DO NOTHING"
);

/// The first event fixes agent, session, predecessor, trigger, tenant, caller, principal, metadata and creation time.
const ADVANCE: &str = concat!(
    "UPDATE run SET status = ?3, version = ?4, title = ?5, updated_at = ?6,
        approvals = ?9, asked_at = ?10, due_at = ?11, results = ?12, answers = ?13, tasks = ?14,
        usage = ?15, result = ?16,
        owner = CASE WHEN ?3 = 'running' THEN coalesce(?7, owner) END,
        lease_until = CASE WHEN ?3 <> 'running' THEN NULL WHEN ?7 IS NULL THEN lease_until ELSE ",
    now_ms!(),
    " + ?8 END
     WHERE id = ?1 AND version = ?2 AND purged_at IS NULL AND (?7 IS NULL OR owner IS NULL OR owner = ?7 OR lease_until <= ",
    now_ms!(),
    ")"
);

/// The same for a row whose indexed columns stay as they are. SQLite rewrites each index that has a column of the `SET`
/// clause, also if the value is the old one. Each column that `ADVANCE` sets is set or compared here.
const ADVANCE_UNINDEXED: &str = concat!(
    "UPDATE run SET version = ?4, title = ?5, updated_at = ?6, usage = ?15, result = ?16,
        lease_until = CASE WHEN ?3 <> 'running' THEN NULL WHEN ?7 IS NULL THEN lease_until ELSE ",
    now_ms!(),
    " + ?8 END
     WHERE id = ?1 AND version = ?2 AND purged_at IS NULL AND (?7 IS NULL OR owner = ?7)
        AND status = ?3 AND approvals = ?9 AND asked_at IS ?10 AND due_at IS ?11 AND results = ?12 AND answers = ?13
        AND tasks = ?14"
);

const RECORD: &str = "INSERT INTO journal (run, seq, at, commit_id, event) VALUES (?1, ?2, ?3, ?4, ?5)";

/// An append with its events and its claim as JSON, and an id that identifies a second attempt at the same append.
pub(super) struct AppendEvents {
    append: Append,
    events: Vec<String>,
    toolsets: Vec<StoredToolset>,
    claim: Option<ClaimSession>,
    /// The usage of the run, if any figure of it is known.
    usage: Option<String>,
    /// The result of the run so far.
    result: Option<String>,
    /// The metadata of a new run, if it has any.
    metadata: Option<String>,
    /// Counts the usage, if there are quotas.
    counted: Option<CountedAppend>,
    commit: Uuid,
}

impl AppendEvents {
    /// Serializes the events and the claim. The caller does this, because the writing thread is the bottleneck.
    pub(super) fn new(append: Append, known: &ToolsetStore, quotas: Arc<Quotas>) -> Result<Self, StoreError> {
        let run = &append.run;
        let mut toolsets = Vec::new();
        let json = append.events.iter().map(|recorded| {
            let Event::ToolsListed { toolset } = &recorded.event else {
                return to_json(format_args!("event {} for run {run}", recorded.seq), &recorded.event);
            };
            let stored = known.stored(run, toolset)?;
            let event = stored.event();
            toolsets.push(stored);
            Ok(event)
        });
        let events = json.collect::<Result<_, StoreError>>()?;
        let claim = ClaimSession::new(&append)?;
        let usage = Some(&append.row.usage).filter(|usage| !usage.is_unknown());
        let usage = usage.map(|usage| to_json(format_args!("the usage of run {run}"), usage)).transpose()?;
        let result = append.row.result.as_ref();
        let result = result.map(|result| to_json(format_args!("the result of run {run}"), result)).transpose()?;
        let metadata = Some(&append.row.metadata).filter(|metadata| append.at == 0 && !metadata.is_empty());
        let metadata =
            metadata.map(|metadata| to_json(format_args!("the metadata of run {run}"), metadata)).transpose()?;
        let counted = CountedAppend::new(quotas, &append);
        Ok(Self { append, events, toolsets, claim, usage, result, metadata, counted, commit: Uuid::now_v7() })
    }

    /// Inserts the index row of a new run; false if the row exists.
    fn create(&self, db: &Connection) -> Result<bool, Error> {
        let Append { run, row, owner, lease, spans_sent, .. } = &self.append;
        let insert = query(CREATE)
            .bind(run.as_str())
            .bind(row.agent.as_str())
            .bind(row.session.as_str())
            .bind(row.status.as_str())
            .bind(integer(row.version))
            .bind(&row.title)
            .bind(row.created_at.to_string())
            .bind(row.updated_at.to_string())
            .bind(owner.as_ref().map(NodeId::as_str))
            .bind(millis(*lease))
            .bind(row.pending_counts.approvals)
            .bind(row.pending_counts.asked_at.map(nanos))
            .bind(row.pending_counts.due_at.map(nanos))
            .bind(row.pending_counts.results)
            .bind(row.pending_counts.answers)
            .bind(row.pending_counts.tasks)
            .bind(row.tenant.as_str())
            .bind(row.predecessor.as_ref().map(RunId::as_str))
            .bind(self.usage.as_ref())
            .bind(self.result.as_ref())
            .bind(row.trigger.map(TriggerKind::as_str))
            .bind(row.schedule.as_ref())
            .bind(row.principal.as_ref().map(Principal::as_str))
            .bind(self.metadata.as_ref())
            .bind(spans_sent.map(integer))
            .bind(spans_sent.map(|_| millis(SPAN_LEASE)))
            .bind(counted_caller(&self.append.events));
        Ok(insert.execute(db)? == 1)
    }

    /// Advances the index row; false if it is at another version, or if another driver owns the run.
    fn advance(&self, db: &Connection) -> Result<bool, Error> {
        Ok(self.update(ADVANCE_UNINDEXED, db)? || self.update(ADVANCE, db)?)
    }

    fn update(&self, statement: &'static str, db: &Connection) -> Result<bool, Error> {
        let Append { run, at, row, owner, lease, .. } = &self.append;
        let update = query(statement)
            .bind(run.as_str())
            .bind(integer(*at))
            .bind(row.status.as_str())
            .bind(integer(row.version))
            .bind(&row.title)
            .bind(row.updated_at.to_string())
            .bind(owner.as_ref().map(NodeId::as_str))
            .bind(millis(*lease))
            .bind(row.pending_counts.approvals)
            .bind(row.pending_counts.asked_at.map(nanos))
            .bind(row.pending_counts.due_at.map(nanos))
            .bind(row.pending_counts.results)
            .bind(row.pending_counts.answers)
            .bind(row.pending_counts.tasks)
            .bind(self.usage.as_ref())
            .bind(self.result.as_ref());
        Ok(update.execute(db)? == 1)
    }

    fn record(&self, db: &Connection) -> Result<(), Error> {
        let (run, commit) = (self.append.run.as_str(), self.commit.as_bytes().as_slice());
        for (recorded, event) in self.append.events.iter().zip(&self.events) {
            let insert = query(RECORD).bind(run).bind(integer(recorded.seq)).bind(recorded.at.to_string());
            insert.bind(commit).bind(event).execute(db)?;
        }
        self.toolsets.iter().try_for_each(|toolset| toolset.put(&self.append.run, db))
    }

    /// What the append adds to the usage of its day. The quota that forbids a new run otherwise.
    fn added_usage(&self, db: &Connection) -> Result<Result<Option<AddedUsage>, QuotaExceeded>, Error> {
        match &self.counted {
            // The second attempt of an append creates no run.
            Some(counted) if self.append.at == 0 && !self.append.is_import && !self.exists(db)? => {
                counted.first(&self.append, db)
            }
            Some(counted) if self.append.at > 0 => counted.later(&self.append, self.usage.as_ref(), db).map(Ok),
            Some(_) | None => Ok(Ok(None)),
        }
    }

    /// Whether the run exists.
    fn exists(&self, db: &Connection) -> Result<bool, Error> {
        let exists = query("SELECT EXISTS (SELECT 1 FROM run WHERE id = ?1)").bind(self.append.run.as_str());
        exists.one::<(bool,)>(db).map(|(exists,)| exists)
    }

    fn why_not(&self, db: &Connection) -> Result<Result<(), AppendError>, Error> {
        let row: Option<(i64, Option<String>)> =
            query("SELECT version, owner FROM run WHERE id = ?1").bind(self.append.run.as_str()).optional(db)?;
        let (version, owner) = row.unwrap_or_default();
        let length = u64::try_from(version).unwrap_or_default();
        match owner {
            Some(owner) if length == self.append.at => Ok(Err(AppendError::Owned(owner.into()))),
            // The first attempt reported a failure but was committed. This is the second attempt.
            Some(_) | None if self.is_recorded(db)? => Ok(Ok(())),
            Some(_) | None => Ok(Err(AppendError::Conflict { length })),
        }
    }

    fn is_recorded(&self, db: &Connection) -> Result<bool, Error> {
        let commit: Option<(Vec<u8>,)> = query("SELECT commit_id FROM journal WHERE run = ?1 AND seq = ?2")
            .bind(self.append.run.as_str())
            .bind(integer(self.append.at))
            .optional(db)?;
        Ok(commit.is_some_and(|(commit,)| commit == self.commit.as_bytes()))
    }
}

impl Write for AppendEvents {
    type Answer = Result<(), AppendError>;

    fn apply(&self, db: &Connection) -> Result<Self::Answer, Error> {
        let added = match self.added_usage(db)? {
            Ok(added) => added,
            Err(over) => return Ok(Err(AppendError::OverQuota(Box::new(over)))),
        };
        if let Some(claim) = &self.claim {
            // First, so that a claim changes nothing if its run exists.
            if self.exists(db)? {
                return self.why_not(db);
            }
            if let Err(refusal) = claim.apply(db)? {
                return Ok(Err(refusal));
            }
        } else if self.append.at == 0 {
            let RunRow { tenant, session, .. } = &self.append.row;
            match session::deleted(db, tenant, session)? {
                Ok(None) => {}
                Ok(Some(row)) => return Ok(Err(AppendError::SessionChanged { current: Some(row.into()) })),
                Err(error) => return Ok(Err(error.into())),
            }
        }
        let taken = if self.append.at == 0 { self.create(db)? } else { self.advance(db)? };
        if !taken {
            return self.why_not(db);
        }
        self.record(db)?;
        added.map_or(Ok(()), |added| added.add(&self.append.row.tenant, db))?;
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_that_leaves_the_indexes_alone_skips_no_column() {
        let (_, set) = ADVANCE.split_once("SET ").unwrap();
        let (set, _) = set.split_once("WHERE id").unwrap();
        let assigned = set.split(" = ").filter_map(|part| part.rsplit([' ', ',', '\n']).next());
        let columns: Vec<&str> =
            assigned.filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '_')).collect();
        assert!(columns.len() > 13 && columns.contains(&"status") && columns.contains(&"lease_until"), "{columns:?}");
        for column in columns {
            let is_there = ["=", "IS"].iter().any(|by| ADVANCE_UNINDEXED.contains(&format!("{column} {by} ")));
            assert!(is_there, "{column}");
        }
    }
}
