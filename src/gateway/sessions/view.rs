//! The API view of a session.

use axum::Json;
use axum::http::HeaderName;
use axum::http::header::ETAG;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::chat::{Usage, Usd};
use toolgate_core::id::RunId;
use toolgate_core::lifecycle::usage;
use toolgate_core::run::Status;
use toolgate_core::timestamp::{millis, optional_millis};
use toolgate_ports::{SessionHead, SessionLimits, SessionRow, SessionRuntime, SessionSettings};
use toolgate_service::TenantRunner;
use utoipa::ToSchema;

use crate::runs::usage::UsageView;
use crate::runs::view::StatusView;

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
    principal: Option<String>,
    /// Its title: yours, or the beginning of the first message. Empty before that.
    title: String,
    /// Your own data about the session.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// Limits of its runs together.
    limits: SessionLimitsView,
    /// The permission mode of its runs; null for the agent's policy.
    mode: Option<String>,
    /// The configuration of its latest run; null before the first run.
    runtime: Option<SessionRuntimeView>,
    /// Its latest run; `null` before the first one.
    head: Option<SessionHeadView>,
    /// The number of its runs.
    runs: u64,
    /// Tokens and cost of its runs, those that a retry replaced included, as far as the providers reported them.
    #[schema(value_type = UsageView)]
    #[serde(serialize_with = "usage")]
    usage: Usage,
    /// Replies of models in its runs.
    iterations: u64,
    /// The caller who created it.
    created_by: Option<String>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    /// When a run was last started in it, or a caller changed it.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    updated_at: Timestamp,
    /// When its latest run last changed; null before the first run.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    last_used_at: Option<Timestamp>,
    /// Seconds without use after which it expires; null for the agent's setting.
    expire_after_s: Option<u64>,
    /// When it expires: a run that begins then does not continue the conversation. Null for never.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    expires_at: Option<Timestamp>,
}

/// Limits of the runs of a session together. A run begins with what the runs before it left; with nothing left, it is
/// refused with `budget_exhausted`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SessionLimits)]
pub(super) struct SessionLimitsView {
    /// Replies of models.
    max_iterations: Option<u32>,
    /// Input and output tokens.
    max_tokens: Option<u64>,
    /// US dollars.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,12}(\.[0-9]{1,12})?$", example = "0.0213")]
    max_cost_usd: Option<Usd>,
    /// Seconds since the session was created.
    deadline_s: Option<u64>,
}

/// The configuration of a session's latest run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SessionRuntime)]
struct SessionRuntimeView {
    /// The folder that it worked on.
    working_directory: Option<String>,
    /// The model that it asked first.
    model: String,
    /// The MCP servers that it could use.
    servers: Vec<String>,
    /// The name of the policy for its calls.
    policy: Option<String>,
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
    pub(super) fn new(runner: &TenantRunner, row: SessionRow) -> Self {
        let (usage, iterations) = (row.total_usage(), row.total_iterations());
        let SessionSettings { metadata, limits, expire_after_s, mode } = row.settings.clone();
        Self {
            expires_at: runner.session_expires_at(&row),
            expire_after_s,
            mode,
            limits: SessionLimitsView::new(limits),
            runtime: row.runtime.map(SessionRuntimeView::new),
            iterations,
            status: SessionStatusView::new(row.head.as_ref()),
            id: row.id.to_string(),
            object: "session",
            version: row.version,
            agent: row.agent.to_string(),
            principal: row.principal.map(|principal| principal.to_string()),
            title: row.title,
            metadata,
            last_used_at: row.head.as_ref().map(|head| head.updated_at),
            head: row.head.map(SessionHeadView::new),
            runs: row.runs,
            usage,
            created_by: row.created_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

impl SessionLimitsView {
    fn new(limits: SessionLimits) -> Self {
        let SessionLimits { max_iterations, max_tokens, max_cost_usd, deadline_s } = limits;
        Self { max_iterations, max_tokens, max_cost_usd, deadline_s }
    }
}

impl SessionRuntimeView {
    fn new(runtime: SessionRuntime) -> Self {
        Self {
            working_directory: runtime.working_directory,
            model: runtime.model.to_string(),
            servers: runtime.servers.iter().map(ToString::to_string).collect(),
            policy: runtime.policy.map(|policy| policy.name),
        }
    }
}

impl SessionStatusView {
    pub(crate) fn new(head: Option<&SessionHead>) -> Self {
        match head.map(|head| head.status) {
            Some(Status::Running) => Self::Running,
            Some(Status::Pending) => Self::Pending,
            Some(Status::Completed | Status::Failed | Status::Cancelled | Status::Incomplete | Status::Expired)
            | None => Self::Idle,
        }
    }
}

impl SessionHeadView {
    fn new(head: SessionHead) -> Self {
        Self { object: "run", id: head.run, status: head.status.into(), version: head.version }
    }
}

/// The view with its `ETag`.
pub(super) fn tagged(runner: &TenantRunner, row: SessionRow) -> ([(HeaderName, String); 1], Json<SessionView>) {
    ([(ETAG, tag(row.version, row.head.as_ref()))], Json(SessionView::new(runner, row)))
}

/// The `ETag` of a session: its version, and that of its latest run, whose status it shows.
pub(crate) fn tag(version: u64, head: Option<&SessionHead>) -> String {
    format!("\"{version}.{}\"", head.map_or(0, |head| head.version))
}
