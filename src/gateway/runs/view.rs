//! The API view of a run.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::chat::{Media, Usage};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::{ModelName, RunId};
use toolgate_core::lifecycle::{optional_failure, optional_output, usage, warnings};
use toolgate_core::run::{Ending, Output, Run, RunPhase, RunResult, RunWarning, Status, Trigger, TriggerKind};
use toolgate_core::timestamp::{millis, optional_millis};
use toolgate_core::trace::SpanContext;
use toolgate_ports::RunRow;
use toolgate_runner::RunnerError;
use toolgate_service::{ServiceError, TenantRun};
use utoipa::ToSchema;

use super::compensation::CompensationView;
use super::failure::{FailureView, failure_of_blocked, failure_of_unknown_agent};
use super::pending::{PendingCountsView, PendingView};
use super::usage::{BudgetView, UsageView};
use crate::closed_sets::{ErrorCodeView, LimitView, PhaseView, RestartView, SummaryStatusView, TriggerView};

/// A run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunView {
    /// The run's id.
    #[schema(value_type = String, example = "run_019a3f6c5b7e7d3a8a51c0ffee000000")]
    id: RunId,
    /// Always `run`.
    object: &'static str,
    /// The length of the run's journal; also its `ETag`. It grows with every change.
    version: u64,
    /// The run's status.
    status: StatusView,
    /// The run's agent.
    agent: String,
    /// The session of the run.
    session_id: String,
    /// The principal on whose behalf the run acts.
    principal: Option<String>,
    /// The caller who started the run.
    created_by: Option<String>,
    /// What started the run.
    #[schema(value_type = TriggerView)]
    trigger: TriggerKind,
    /// The schedule that started the run.
    schedule: Option<String>,
    /// The run that this one is a fork of.
    forked_from: Option<String>,
    /// The run that this one is a retry of: it takes that run's place in the session.
    retry_of: Option<String>,
    /// When the run was started.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    /// When the run last changed.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    updated_at: Timestamp,
    /// The earliest deadline of the run: that of a pending item, or its own.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    due_at: Option<Timestamp>,
    /// The required actions; empty unless the run is `pending`.
    pending: Vec<PendingView>,
    /// The run's answer, if there is one.
    #[schema(value_type = Option<OutputView>)]
    #[serde(serialize_with = "optional_output")]
    output: Option<Output>,
    /// Warnings about the result of a run that completed.
    #[schema(value_type = Vec<WarningView>)]
    #[serde(serialize_with = "warnings")]
    warnings: Vec<RunWarning>,
    /// What became of the calls that the run undoes before it ends as failed or cancelled.
    compensation: Option<CompensationView>,
    /// The error that ended the run, if it did not complete.
    #[schema(value_type = Option<FailureView>)]
    #[serde(serialize_with = "optional_failure")]
    error: Option<Failure>,
    /// Why the run is `incomplete`.
    incomplete_details: Option<IncompleteView>,
    /// The result of the run in short.
    #[serde(flatten)]
    result: ResultView,
    /// Why this server cannot continue the run: its agent, or one of its servers, is not configured here. The run waits
    /// until it is configured again, or until the run is cancelled.
    #[schema(value_type = Option<FailureView>)]
    #[serde(serialize_with = "optional_failure")]
    blocked: Option<Failure>,
    /// Tokens and cost, as far as the providers reported them.
    #[schema(value_type = UsageView)]
    #[serde(serialize_with = "usage")]
    usage: Usage,
    /// How much of its limits the run has used.
    budget: BudgetView,
    /// The trace of the latest execution.
    trace_id: String,
    /// The root span of the latest execution.
    span_id: String,
    #[serde(skip)]
    execution: SpanContext,
    /// The caller's own data about the run.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

/// The result of a run in short.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = RunResult)]
struct ResultView {
    /// The beginning of the answer or, without one, of the last text of a model; at most 500 characters.
    summary: Option<String>,
    /// The exit code that `toolgate run` has for this result; null while the run is not over.
    exit_code: Option<u8>,
    /// The milliseconds from the start of the run to its end, waits included; null while the run is not over.
    duration_ms: Option<u64>,
    /// How far a run that did not complete came.
    #[schema(value_type = Option<PhaseView>)]
    phase: Option<RunPhase>,
    /// The models that replied, in the order of their first replies.
    #[schema(value_type = Vec<String>)]
    models: Vec<ModelName>,
}

/// Why a run is `incomplete`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IncompleteDetails)]
pub(super) struct IncompleteView {
    /// The limit that the run reached.
    #[schema(value_type = LimitView)]
    reason: &'static str,
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Status)]
pub(crate) enum StatusView {
    /// The run is being executed.
    Running,
    /// The run requires the actions in `pending`.
    Pending,
    /// The run ended with an answer.
    Completed,
    /// The run ended with an error.
    Failed,
    /// The run was cancelled.
    Cancelled,
    /// The run reached a hard limit, which `incomplete_details` names; its result so far is in `output`.
    Incomplete,
    /// A required action was not completed in time.
    Expired,
}

/// An answer.
#[derive(ToSchema)]
#[schema(as = Output)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct OutputView {
    /// The text as the model wrote it.
    text: String,
    /// The parsed value, if there is an output schema.
    #[schema(value_type = Option<Value>)]
    value: Option<Value>,
    /// The media of the answer.
    media: Vec<MediaView>,
}

/// A warning about the result of a run.
#[derive(ToSchema)]
#[schema(as = RunWarning)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct WarningView {
    /// The code: `empty_answer` for an answer without text and media, `limit_exceeded` for a run that continued beyond a
    /// hard limit with `on_exceed: warn`, `incomplete_tools` for a run without all tools, `session_restarted` for a run
    /// that did not continue the conversation of its session.
    code: WarningCodeView,
    /// With `incomplete_tools`: the MCP servers that were not available, or did not list all of their tools.
    servers: Vec<String>,
    /// With `limit_exceeded`: the limit.
    limit: Option<LimitView>,
    /// With `session_restarted`: why.
    restart: Option<RestartView>,
}

/// The code of a warning. Open: later versions may add values.
#[derive(ToSchema)]
#[schema(as = WarningCode, rename_all = "snake_case")]
#[allow(dead_code)] // core writes it; this describes what it writes
enum WarningCodeView {
    EmptyAnswer,
    LimitExceeded,
    IncompleteTools,
    SessionRestarted,
}

/// An image or an audio clip.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Media)]
pub(crate) struct MediaView {
    /// The media type, for example `image/png`.
    media_type: String,
    /// The bytes as base64, if they are inline.
    data: Option<String>,
    /// The URL of the bytes, otherwise.
    url: Option<String>,
}

/// A run in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunSummary)]
pub(crate) struct SummaryView {
    /// The run's id.
    #[schema(value_type = String)]
    id: RunId,
    /// Always `run.summary`.
    object: &'static str,
    /// The length of the run's journal.
    version: u64,
    /// The run's status.
    #[schema(value_type = SummaryStatusView)]
    status: &'static str,
    /// The run's agent.
    agent: String,
    /// The session of the run.
    session_id: String,
    /// What started the run; null for some runs of earlier versions of toolgate.
    #[schema(value_type = Option<TriggerView>)]
    trigger: Option<TriggerKind>,
    /// The schedule that started the run.
    schedule: Option<String>,
    /// The principal on whose behalf the run acts.
    principal: Option<String>,
    /// Your own data about the run.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// The beginning of the user's message.
    title: String,
    /// When the run was started.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    /// When the run last changed.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    updated_at: Timestamp,
    /// The earliest deadline of the run: that of a pending item, or its own.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    due_at: Option<Timestamp>,
    /// The number of pending items of each kind.
    pending_counts: PendingCountsView,
    /// Tokens and cost of the run, as far as the providers reported them.
    #[schema(value_type = UsageView)]
    #[serde(serialize_with = "usage")]
    usage: Usage,
    /// The code of the error that ended the run, if it did not complete.
    #[schema(value_type = Option<ErrorCodeView>)]
    error_code: Option<ErrorCode>,
    /// The number of replies from models; null for a run of an earlier version of toolgate.
    iterations: Option<u32>,
    /// The result of the run in short; without a value for a run of an earlier version of toolgate.
    #[serde(flatten)]
    result: ResultView,
    /// Why this server cannot continue the run: its agent is not configured here.
    #[schema(value_type = Option<FailureView>)]
    #[serde(serialize_with = "optional_failure")]
    blocked: Option<Failure>,
}

impl RunView {
    /// The view of a run as it is now.
    pub(crate) async fn read(run: &TenantRun) -> Result<Self, ServiceError> {
        Ok(Self::of_run(run, &run.load().await?))
    }

    /// The view of a run that was already folded.
    pub(crate) fn of_run(run: &TenantRun, folded: &Run) -> Self {
        Self::new(&run.row, folded, run.blocked(folded))
    }

    /// The view of a run and its index row. The row may be a little older.
    fn new(row: &RunRow, run: &Run, blocked: Option<RunnerError>) -> Self {
        let started = run.started();
        let ending = run.ending();
        let pending = run.open_items();
        let (forked_from, retry_of) = match &started.trigger {
            Trigger::Manual | Trigger::Api | Trigger::Schedule { .. } | Trigger::Compaction => (None, None),
            Trigger::Fork { run, .. } => (Some(run.to_string()), None),
            Trigger::Retry { run, .. } => (None, Some(run.to_string())),
        };
        let execution = run.execution_context();
        Self {
            id: row.id.clone(),
            object: "run",
            version: run.length(),
            status: run.status().into(),
            agent: started.spec.agent.to_string(),
            session_id: started.session.to_string(),
            principal: started.spec.principal.as_ref().map(ToString::to_string),
            created_by: started.by.clone(),
            trigger: started.trigger.kind(),
            schedule: started.trigger.schedule().map(str::to_owned),
            forked_from,
            retry_of,
            created_at: row.created_at,
            updated_at: run.clock().unwrap_or(row.updated_at),
            due_at: run.pending_counts(row.created_at).due_at,
            pending: pending.iter().map(|item| PendingView::new(&row.id, item)).collect(),
            output: ending.and_then(|ending| ending.output()).cloned(),
            warnings: run.warnings(),
            compensation: run.compensation().map(CompensationView::new),
            error: run.failure().map(|failure| Failure { details: None, ..failure.of_run(&row.id) }),
            incomplete_details: ending.and_then(Ending::limit).map(|limit| IncompleteView { reason: limit.name() }),
            result: ResultView::new(run.result()),
            blocked: blocked.map(failure_of_blocked),
            usage: run.budget().usage,
            budget: BudgetView::new(run.budget()),
            trace_id: execution.trace.to_string(),
            span_id: execution.span.to_string(),
            execution,
            metadata: started.metadata.clone(),
        }
    }

    /// The root span of the latest execution.
    pub(crate) fn execution(&self) -> &SpanContext {
        &self.execution
    }

    /// The length of the run's journal.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

impl From<Status> for StatusView {
    fn from(status: Status) -> Self {
        match status {
            Status::Running => Self::Running,
            Status::Pending => Self::Pending,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
            Status::Incomplete => Self::Incomplete,
            Status::Expired => Self::Expired,
        }
    }
}

impl MediaView {
    pub(crate) fn new(media: &Media) -> Self {
        Self { media_type: media.media_type.clone(), data: media.data.clone(), url: media.url.clone() }
    }
}

impl ResultView {
    fn new(result: RunResult) -> Self {
        Self {
            summary: result.summary,
            exit_code: result.exit_code,
            duration_ms: result.duration_ms,
            phase: result.phase,
            models: result.models,
        }
    }
}

impl SummaryView {
    /// The view of an index row. `has_agent`: whether the agent of the run is configured here.
    pub(crate) fn new(row: RunRow, has_agent: bool) -> Self {
        let is_blocked = !has_agent && !row.status.is_ended();
        let blocked = is_blocked.then(|| failure_of_unknown_agent(&row.agent));
        Self {
            id: row.id,
            object: "run.summary",
            version: row.version,
            status: match row.is_interrupted {
                true => "interrupted",
                false => row.status.as_str(),
            },
            agent: row.agent.to_string(),
            session_id: row.session.to_string(),
            trigger: row.trigger,
            schedule: row.schedule,
            principal: row.principal.as_ref().map(ToString::to_string),
            metadata: row.metadata,
            title: row.title,
            created_at: row.created_at,
            updated_at: row.updated_at,
            due_at: row.pending_counts.due_at,
            pending_counts: PendingCountsView::new(&row.pending_counts),
            usage: row.usage,
            error_code: row.result.as_ref().and_then(|result| result.error_code),
            iterations: row.result.as_ref().map(|result| result.iterations),
            result: row.result.map(ResultView::new).unwrap_or_default(),
            blocked,
        }
    }
}
