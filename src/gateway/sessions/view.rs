//! The API view of a session.

use axum::Json;
use axum::http::HeaderName;
use axum::http::header::ETAG;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::id::RunId;
use toolgate_core::run::Status;
use toolgate_ports::{SessionHead, SessionRow};
use utoipa::ToSchema;

use crate::runs::view::{StatusView, UsageView};

/// A session: a conversation of successive runs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionView {
    /// The session's id.
    id: String,
    /// Always `session`.
    object: &'static str,
    /// Grows with each run and each change. The `ETag` has it and the version of the latest run.
    version: u64,
    /// Whether it has a live run.
    status: SessionStatusView,
    /// The agent of its runs.
    agent: String,
    /// The principal on whose behalf its runs act.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// Its title: yours, or the beginning of the first message. Empty before that.
    title: String,
    /// Your own data about the session.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// Its latest run; `null` before the first one.
    head: Option<SessionHeadView>,
    /// The number of its runs.
    runs: u64,
    /// Tokens and cost of its runs, those that a retry replaced included, as far as the providers reported them.
    usage: UsageView,
    /// The caller who created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<String>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When a run was last started in it, or a caller changed it.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// When its latest run last changed; absent before the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Timestamp>,
}

/// The status of a session.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SessionStatus)]
pub(crate) enum SessionStatusView {
    /// It has no run, or its latest run has ended.
    Idle,
    /// Its latest run is executing.
    Running,
    /// Its latest run has required actions.
    Pending,
}

/// The latest run of a session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SessionHead)]
struct SessionHeadView {
    /// Always `run`.
    object: &'static str,
    /// The run's id.
    #[schema(value_type = String)]
    id: RunId,
    /// The run's status.
    status: StatusView,
    /// The length of the run's journal.
    version: u64,
}

impl SessionView {
    pub(super) fn of(row: SessionRow) -> Self {
        let usage = UsageView::of(&row.total_usage());
        Self {
            status: SessionStatusView::of(row.head.as_ref()),
            id: row.id.to_string(),
            object: "session",
            version: row.version,
            agent: row.agent.to_string(),
            principal: row.principal.map(|principal| principal.to_string()),
            title: row.title,
            metadata: row.metadata,
            last_used_at: row.head.as_ref().map(|head| head.updated_at),
            head: row.head.map(SessionHeadView::of),
            runs: row.runs,
            usage,
            created_by: row.created_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

impl SessionStatusView {
    pub(crate) fn of(head: Option<&SessionHead>) -> Self {
        match head.map(|head| head.status) {
            Some(Status::Running) => Self::Running,
            Some(Status::Pending) => Self::Pending,
            Some(Status::Completed | Status::Failed | Status::Cancelled | Status::TurnLimit | Status::Expired)
            | None => Self::Idle,
        }
    }
}

impl SessionHeadView {
    fn of(head: SessionHead) -> Self {
        Self { object: "run", id: head.run, status: head.status.into(), version: head.version }
    }
}

/// The view with its `ETag`.
pub(super) fn tagged(row: SessionRow) -> ([(HeaderName, String); 1], Json<SessionView>) {
    ([(ETAG, tag(row.version, row.head.as_ref()))], Json(SessionView::of(row)))
}

/// The `ETag` of a session: its version, and that of its latest run, whose status it shows.
pub(crate) fn tag(version: u64, head: Option<&SessionHead>) -> String {
    format!("\"{version}.{}\"", head.map_or(0, |head| head.version))
}
