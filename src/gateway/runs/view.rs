//! A run as the API shows it.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::pending::PendingView;
use crate::core::chat::{Media, Usage};
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::RunId;
use crate::core::run::{Budget, Output, Owes, Run, Status, Trigger};
use crate::ports::RunRow;
use crate::runner::RunnerError;

/// A run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(in crate::gateway) struct RunView {
    /// Its id.
    #[schema(value_type = String, example = "run_019a3f6c5b7e7d3a8a51c0ffee000000")]
    id: RunId,
    /// `run`.
    object: &'static str,
    /// The length of its journal; also its `ETag`. It grows with everything that happens.
    version: u64,
    /// Where it stands.
    status: StatusView,
    /// Its agent.
    agent: String,
    /// The conversation it belongs to.
    session_id: String,
    /// On whose behalf it acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// Who started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<String>,
    /// The run whose beginning it copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<String>,
    /// When it was started.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When something happened in it last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// When time first runs out for something it is owed, or for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Timestamp>,
    /// What it is owed; empty unless it is `pending`.
    pending: Vec<PendingView>,
    /// The answer, if there is one.
    output: Option<OutputView>,
    /// Why it did not complete.
    error: Option<FailureView>,
    /// Why this server cannot go on with it: its agent, or one of its servers, is not configured here. It waits until that is
    /// configured again, or until it is cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<FailureView>,
    /// Tokens and money, as far as anybody told.
    usage: UsageView,
    /// What it used of its limits.
    budget: BudgetView,
    /// The trace of its latest execution.
    trace_id: String,
    /// The caller's own facts about it.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Status)]
pub(in crate::gateway) enum StatusView {
    /// It is at work.
    Running,
    /// It waits for what is in `pending`.
    Pending,
    /// It has its answer.
    Completed,
    /// It could not go on.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// It reached a hard limit; what it had by then is in `output`.
    TurnLimit,
    /// What it waited for did not come in time.
    Expired,
}

/// An answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Output)]
pub(in crate::gateway) struct OutputView {
    /// As the model wrote it.
    text: String,
    /// Parsed, where there is an output schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    value: Option<Value>,
    /// The media in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    media: Vec<MediaView>,
}

/// A piece of media.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Media)]
pub(in crate::gateway) struct MediaView {
    /// For example `image/png`.
    media_type: String,
    /// The bytes as base64, when inline.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// Where the bytes are, otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// Why a run did not complete.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Failure)]
pub(in crate::gateway) struct FailureView {
    /// The stable code.
    #[schema(value_type = String, example = "provider_unavailable")]
    code: ErrorCode,
    /// What happened and what to do, for people.
    message: String,
    /// Whether the same may succeed later.
    retryable: bool,
}

/// Tokens and money. What nobody told is not there; it is never zero for that reason.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
pub(in crate::gateway) struct UsageView {
    /// Tokens read, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    /// Tokens written, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    /// Part of the tokens read that came from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_tokens: Option<u64>,
    /// Part of the tokens read that was written to the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
    /// Part of the tokens written that was reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

/// What is used of a run's limits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Budget)]
pub(in crate::gateway) struct BudgetView {
    /// Turns with tools, and rejected answers.
    tool_interactions: u32,
    /// How many there may be.
    max_tool_interactions: u32,
    /// Turns of the model.
    iterations: u32,
    /// How many there may be.
    max_iterations: u32,
    /// Calls sent to MCP servers.
    mcp_calls: u32,
    /// How many there may be, if that is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_mcp_calls: Option<u32>,
    /// Whether no more tools run.
    exhausted: bool,
}

/// That the agent of a run is not configured here.
fn no_such_agent(name: &str) -> String {
    format!("agent `{name}` is not configured here; configure it again, or cancel the run")
}

/// A run in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunSummary)]
pub(in crate::gateway) struct SummaryView {
    /// Its id.
    #[schema(value_type = String)]
    id: RunId,
    /// `run.summary`.
    object: &'static str,
    /// The length of its journal.
    version: u64,
    /// Where it stands.
    status: StatusView,
    /// Its agent.
    agent: String,
    /// The conversation it belongs to.
    session_id: String,
    /// The beginning of the user's message.
    title: String,
    /// When it was started.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When something happened in it last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// When time first runs out for something it is owed, or for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Timestamp>,
    /// How many things of each kind it is owed.
    owes: OwesView,
    /// Why this server cannot go on with it: its agent is not configured here.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<FailureView>,
}

/// How many things of each kind a run is owed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Owes)]
pub(in crate::gateway) struct OwesView {
    /// Decisions.
    approvals: u32,
    /// Results of external tools.
    results: u32,
    /// Answers to questions of the model, or of servers.
    answers: u32,
    /// Tasks that servers go on with by themselves.
    tasks: u32,
}

impl RunView {
    /// A run and its index row. The row may be a little older.
    pub(in crate::gateway) fn of(row: &RunRow, run: &Run, blocked: Option<RunnerError>) -> Self {
        let started = run.started();
        let ending = run.ending();
        let pending = run.open_items();
        let forked_from = match &started.trigger {
            Trigger::Manual => None,
            Trigger::Fork { run, .. } => Some(run.to_string()),
        };
        Self {
            id: row.id.clone(),
            object: "run",
            version: run.length(),
            status: run.status().into(),
            agent: started.spec.agent.to_string(),
            session_id: started.session.to_string(),
            principal: started.spec.principal.as_ref().map(ToString::to_string),
            created_by: started.by.clone(),
            forked_from,
            created_at: row.created_at,
            updated_at: run.clock().unwrap_or(row.updated_at),
            due_at: run.owes(row.created_at).due_at,
            pending: pending.iter().map(|debt| PendingView::of(&row.id, debt)).collect(),
            output: ending.and_then(|ending| ending.output()).map(OutputView::of),
            error: ending.and_then(|ending| ending.failure()).map(FailureView::of),
            blocked: blocked.map(FailureView::of_blocked),
            usage: UsageView::of(&run.budget().usage),
            budget: BudgetView::of(run.budget()),
            trace_id: run.execution().1.id.to_string(),
            metadata: started.metadata.clone(),
        }
    }

    /// The length of its journal.
    pub(in crate::gateway) fn version(&self) -> u64 {
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
            Status::TurnLimit => Self::TurnLimit,
            Status::Expired => Self::Expired,
        }
    }
}

impl OutputView {
    fn of(output: &Output) -> Self {
        let media = output.media.iter().map(MediaView::of).collect();
        Self { text: output.text.clone(), value: output.value.clone(), media }
    }
}

impl MediaView {
    pub(in crate::gateway) fn of(media: &Media) -> Self {
        Self { media_type: media.media_type.clone(), data: media.data.clone(), url: media.url.clone() }
    }
}

impl FailureView {
    fn of(failure: Failure) -> Self {
        Self { code: failure.code, message: failure.message, retryable: failure.retryable }
    }

    fn of_blocked(error: RunnerError) -> Self {
        // The names of other agents are not this caller's to read.
        let message = if let RunnerError::NoSuchAgent { name, .. } = &error {
            no_such_agent(name.as_str())
        } else {
            error.to_string()
        };
        Self { code: ErrorCode::Configuration, message, retryable: false }
    }
}

impl UsageView {
    fn of(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cost_usd: usage.cost_usd,
        }
    }
}

impl BudgetView {
    fn of(budget: &Budget) -> Self {
        Self {
            tool_interactions: budget.tool_interactions,
            max_tool_interactions: budget.limits.max_tool_interactions,
            iterations: budget.iterations,
            max_iterations: budget.limits.max_iterations,
            mcp_calls: budget.mcp_calls,
            max_mcp_calls: budget.limits.max_mcp_calls,
            exhausted: budget.is_exhausted(),
        }
    }
}

impl SummaryView {
    /// An index row, and whether the agent of the run is configured here.
    pub(in crate::gateway) fn of(row: RunRow, has_agent: bool) -> Self {
        let is_blocked = !has_agent && !row.status.is_ended();
        let blocked = is_blocked.then(|| FailureView {
            code: ErrorCode::Configuration,
            message: no_such_agent(row.agent.as_str()),
            retryable: false,
        });
        let Owes { approvals, results, answers, tasks, due_at, .. } = row.owes;
        Self {
            id: row.id,
            object: "run.summary",
            version: row.version,
            status: row.status.into(),
            agent: row.agent.to_string(),
            session_id: row.session.to_string(),
            title: row.title,
            created_at: row.created_at,
            updated_at: row.updated_at,
            due_at,
            owes: OwesView { approvals, results, answers, tasks },
            blocked,
        }
    }
}
