//! Feedback on runs: a few rows for each run.

use async_trait::async_trait;
use rusqlite::{Connection, Error};
use toolgate_core::id::{FeedbackId, RunId};
use toolgate_ports::{Feedback, FeedbackStore, MAX_FEEDBACK, StoreError};

use super::SqliteStore;
use super::json::to_json;
use super::query::query;
use super::units::{integer, nanos};
use super::writer::Write;

pub(super) const PUT: &str = "INSERT INTO feedback (run, id, created_at, body) SELECT ?1, ?2, ?3, ?4
    WHERE EXISTS (SELECT 1 FROM run WHERE id = ?1 AND purged_at IS NULL)
        AND (SELECT count(*) FROM feedback WHERE run = ?1 AND id <> ?2) < ?5
    ON CONFLICT (run, id) DO UPDATE SET created_at = excluded.created_at, body = excluded.body";
pub(super) const LIST: &str = "SELECT body FROM feedback WHERE run = ?1 ORDER BY created_at, id";
const DELETE: &str = "DELETE FROM feedback WHERE run = ?1 AND id = ?2";
/// Removes stored responses that quote feedback. The record that the request was answered stays.
pub(super) const UNQUOTE: &str = "UPDATE idempotency_record SET response = NULL, body = NULL
    WHERE response ->> 'run' = ?1 AND instr(body, ?2) > 0";

#[async_trait]
impl FeedbackStore for SqliteStore {
    async fn put_feedback(&self, run: &RunId, feedback: &Feedback) -> Result<bool, StoreError> {
        let body = to_json(format_args!("feedback {}", feedback.id), feedback)?;
        let (run, id) = (run.clone(), feedback.id.clone());
        self.writer.make(PutFeedback { run, id, created_at: nanos(feedback.created_at), body }).await
    }

    async fn feedback(&self, run: &RunId) -> Result<Vec<Feedback>, StoreError> {
        let rows: Vec<(String,)> = self.lookups.all(query(LIST).bind(run.as_str())).await?;
        let unreadable = |error| StoreError::Corrupt(format!("feedback on run {run} is unreadable: {error}"));
        rows.iter().map(|(body,)| serde_json::from_str(body).map_err(unreadable)).collect()
    }

    async fn delete_feedback(&self, run: &RunId, id: &FeedbackId) -> Result<bool, StoreError> {
        self.writer.make(DeleteFeedback { run: run.clone(), id: id.clone() }).await
    }
}

struct PutFeedback {
    run: RunId,
    id: FeedbackId,
    created_at: i64,
    body: String,
}

impl Write for PutFeedback {
    /// Whether it was stored.
    type Answer = bool;

    fn apply(&self, db: &Connection) -> Result<bool, Error> {
        let put = query(PUT).bind(self.run.as_str()).bind(self.id.as_str()).bind(self.created_at).bind(&self.body);
        Ok(put.bind(integer(MAX_FEEDBACK as u64)).execute(db)? > 0)
    }
}

struct DeleteFeedback {
    run: RunId,
    id: FeedbackId,
}

impl Write for DeleteFeedback {
    /// Whether there was such feedback.
    type Answer = bool;

    fn apply(&self, db: &Connection) -> Result<bool, Error> {
        let of_feedback = |sql| query(sql).bind(self.run.as_str()).bind(self.id.as_str()).execute(db);
        let is_deleted = of_feedback(DELETE)? > 0;
        if is_deleted {
            of_feedback(UNQUOTE)?;
        }
        Ok(is_deleted)
    }
}
