//! Deletion of a run's content: the events are deleted, the index row stays and records the time of the deletion.

use jiff::Timestamp;
use rusqlite::{Connection, Error};
use toolgate_core::id::RunId;
use toolgate_core::run::Status;

use super::blob;
use super::grant::blank_grants;
use super::query::query;
use super::units::integer;
use super::writer::Write;

const MARK: &str =
    "UPDATE run SET purged_at = ?3, title = '', metadata = NULL, result = json_remove(result, '$.summary'), approvals = 0,
        results = 0, answers = 0, tasks = 0, asked_at = NULL, due_at = NULL, announced = version
    WHERE id = ?1 AND version = ?2 AND purged_at IS NULL AND status NOT IN (?4, ?5)";
/// Removes the title of the session if it quotes the run. The session has another version then, and also if the run is its
/// head: a claim that read the run's messages is refused.
const UNTITLE: &str = "UPDATE session SET title = CASE WHEN session.title = run.title THEN '' ELSE session.title END,
        version = session.version + 1
    FROM run WHERE run.id = ?1 AND run.version = ?2 AND run.purged_at IS NULL AND run.status NOT IN (?3, ?4)
        AND session.tenant = run.tenant AND session.id = run.session
        AND (session.title = run.title OR session.head = run.id)";
/// Keeps the last position of the log, which would be used again if its row were deleted: clients have it as their cursor.
const KEEP_POSITION: &str = "INSERT OR REPLACE INTO journal (position, run, seq, at, commit_id, event)
    SELECT position, '', 0, '', x'', 'null' FROM journal
    WHERE position = (SELECT max(position) FROM journal) AND run = ?1";
const EMPTY: &str = "DELETE FROM journal WHERE run = ?1";
/// Later runs of the conversation no longer read it.
pub(super) const FORGET: &str =
    "DELETE FROM segment WHERE tenant = (SELECT tenant FROM run WHERE id = ?1) AND run = ?1";
/// Removes the conversation before the run, if the store does not have the runs of it and no other run continues it: a
/// fork's copy, or the beginning that a run brought from another store. Only a retry shares it, in the same session.
pub(super) const FORGET_BEFORE: &str = "DELETE FROM segment
    WHERE (tenant, run) IN (SELECT tenant, predecessor FROM run WHERE id = ?1)
    AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = segment.run AND run.tenant = segment.tenant)
    AND NOT EXISTS (SELECT 1 FROM run AS own CROSS JOIN run AS other
        ON other.tenant = own.tenant AND other.session = own.session AND other.purged_at IS NULL
        WHERE own.id = ?1 AND other.predecessor = own.predecessor)";
/// Removes stored responses that quote the run. The record that the request was answered stays.
pub(super) const UNQUOTE: &str =
    "UPDATE idempotency_record SET response = NULL, body = NULL WHERE response ->> 'run' = ?1";
/// Removes stored responses that quote a session. The record that the request was answered stays.
pub(super) const UNQUOTE_SESSION: &str = "UPDATE idempotency_record SET response = NULL, body = NULL
    WHERE tenant = ?1 AND response ->> 'session' = ?2";
/// Removes what grants quote of calls of the run. The grants stay valid.
pub(super) const BLANK: &str = concat!(blank_grants!(), " WHERE body ->> 'run' = ?1");
/// Deletes the deliveries to the webhook of the run, which is deleted after them.
const FORGET_DELIVERIES: &str =
    "DELETE FROM webhook_delivery WHERE endpoint IN (SELECT id FROM webhook_endpoint WHERE run = ?1)";
pub(super) const FORGET_WEBHOOK: &str = "DELETE FROM webhook_endpoint WHERE run = ?1";
pub(super) const FORGET_FEEDBACK: &str = "DELETE FROM feedback WHERE run = ?1";
const SINCE: &str = "SELECT purged_at FROM run WHERE id = ?1";

/// A run whose content is deleted if the run has ended and its journal has exactly this length.
pub(super) struct PurgeRun {
    pub(super) run: RunId,
    pub(super) at: u64,
    pub(super) now: Timestamp,
}

impl Write for PurgeRun {
    /// The time of the deletion.
    type Answer = Option<String>;

    fn apply(&self, db: &Connection) -> Result<Self::Answer, Error> {
        query(UNTITLE)
            .bind(self.run.as_str())
            .bind(integer(self.at))
            .bind(Status::Running.as_str())
            .bind(Status::Pending.as_str())
            .execute(db)?;
        let marked = query(MARK)
            .bind(self.run.as_str())
            .bind(integer(self.at))
            .bind(self.now.to_string())
            .bind(Status::Running.as_str())
            .bind(Status::Pending.as_str())
            .execute(db)?;
        if marked == 1 {
            for statement in [
                KEEP_POSITION,
                EMPTY,
                FORGET,
                FORGET_BEFORE,
                UNQUOTE,
                BLANK,
                FORGET_DELIVERIES,
                FORGET_WEBHOOK,
                FORGET_FEEDBACK,
                blob::DROP,
                blob::FORGET,
            ] {
                query(statement).bind(self.run.as_str()).execute(db)?;
            }
        }
        let since: Option<(Option<String>,)> = query(SINCE).bind(self.run.as_str()).optional(db)?;
        Ok(since.and_then(|(since,)| since))
    }
}
