//! Wire forms of answers, usage, errors, warnings, limits and details of events: their JSON in events, in the resources
//! of the HTTP API and in the result line of the command line. Each member is always there, and null if it has no
//! value. A journal leaves such members out, so it has a form of its own.

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::chat::{Costs, Media, Usage, Usd};
use crate::error::{ErrorCode, FailedStep, Failure, FailureContext, MalformedReply};
use crate::id::{AgentName, GrantId, ModelName, RunId, ServerId};
use crate::run::{CallEstimate, Limit, Limits, Output, Restart, RunWarning, ToolGrant};
use crate::tool::{AuthorizationStatus, Difference, LeftOut, ServerAuthorization, ToolName};

/// Why a run is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IncompleteDetails {
    /// The limit that it reached.
    pub reason: Limit,
}

#[derive(Serialize)]
struct OutputJson<'a> {
    text: &'a str,
    value: Option<&'a Value>,
    media: Vec<MediaJson<'a>>,
}

#[derive(Serialize)]
struct MediaJson<'a> {
    media_type: &'a str,
    data: Option<&'a str>,
    url: Option<&'a str>,
}

#[derive(Serialize)]
struct UsageJson {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
    cost_usd: Option<Usd>,
    costs: Option<Costs>,
}

#[derive(Serialize)]
struct LimitsJson {
    max_tool_interactions: u32,
    max_iterations: u32,
    max_mcp_calls: Option<u32>,
    max_tokens: Option<u64>,
    max_cost_usd: Option<Usd>,
    deadline_s: Option<u64>,
    max_corrections: u32,
    max_attempts: u32,
    max_result_bytes: u64,
}

#[derive(Serialize)]
struct WarningJson<'a> {
    code: &'static str,
    servers: &'a [ServerId],
    limit: Option<Limit>,
    restart: Option<Restart>,
}

#[derive(Serialize)]
struct FailureJson<'a> {
    code: ErrorCode,
    message: &'a str,
    retryable: bool,
    retry_after_ms: Option<u64>,
    step: Option<FailedStep>,
    context: Option<ContextJson<'a>>,
    /// Content, so only where content is included.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a MalformedReply>,
}

#[derive(Serialize)]
struct ContextJson<'a> {
    run_id: Option<&'a RunId>,
    agent: &'a AgentName,
    model: Option<&'a ModelName>,
    attempt: Option<u32>,
}

#[derive(Serialize)]
struct AuthorizationJson<'a> {
    server: &'a ServerId,
    status: AuthorizationStatus,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct LeftOutJson<'a> {
    server: Option<&'a ServerId>,
    name: Option<&'a str>,
    reason: &'a str,
}

#[derive(Serialize)]
struct GrantJson<'a> {
    tool_name: &'a ToolName,
    grant_id: &'a GrantId,
    arguments_hash: Option<&'a str>,
    when: Option<&'a str>,
    expires_at: Option<Timestamp>,
}

#[derive(Serialize)]
struct EstimateJson {
    input_tokens: u64,
    output_tokens: Option<u64>,
    cost_usd: Option<Usd>,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    field: &'a str,
    before: &'a str,
    after: &'a str,
    omitted_chars: usize,
}

/// For `#[serde(serialize_with)]`: tokens and cost, with their totals.
pub fn usage<S: Serializer>(usage: &Usage, serializer: S) -> Result<S::Ok, S::Error> {
    let json = UsageJson {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        total_tokens: usage.total_tokens(),
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        cost_usd: usage.cost_usd,
        costs: usage.costs,
    };
    json.serialize(serializer)
}

/// For `#[serde(serialize_with)]`: limits of a run.
pub fn limits<S: Serializer>(limits: &Limits, serializer: S) -> Result<S::Ok, S::Error> {
    LimitsJson::new(limits).serialize(serializer)
}

/// The same for limits that may be missing.
pub(super) fn optional_limits<S: Serializer>(limits: &Option<Box<Limits>>, serializer: S) -> Result<S::Ok, S::Error> {
    limits.as_deref().map(LimitsJson::new).serialize(serializer)
}

/// For `#[serde(serialize_with)]`: warnings about the result of a run.
pub fn warnings<S: Serializer>(warnings: &[RunWarning], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(warnings.iter().map(WarningJson::new))
}

/// For `#[serde(serialize_with)]`: the authorization status of a server.
pub(super) fn authorization<S: Serializer>(
    ServerAuthorization { server, status, reason }: &ServerAuthorization,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    AuthorizationJson { server, status: *status, reason: reason.as_deref() }.serialize(serializer)
}

/// For `#[serde(serialize_with)]`: tools and servers that are not available.
pub(super) fn left_out<S: Serializer>(left_out: &[LeftOut], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(left_out.iter().map(LeftOutJson::new))
}

/// For `#[serde(serialize_with)]`: grants that cover tools.
pub(super) fn grants<S: Serializer>(grants: &[ToolGrant], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(grants.iter().map(GrantJson::new))
}

/// For `#[serde(serialize_with)]`: the worst case of a model call.
pub(super) fn estimate<S: Serializer>(
    CallEstimate { input_tokens, output_tokens, cost_usd }: &CallEstimate,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    EstimateJson { input_tokens: *input_tokens, output_tokens: *output_tokens, cost_usd: *cost_usd }
        .serialize(serializer)
}

/// For `#[serde(serialize_with)]`: differences to an approved call, if content is included.
pub(super) fn optional_differences<S: Serializer>(
    differences: &Option<Vec<Difference>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(differences.iter().flatten().map(DifferenceJson::new))
}

/// For `#[serde(serialize_with)]`: an error.
pub(super) fn failure<S: Serializer>(failure: &Failure, serializer: S) -> Result<S::Ok, S::Error> {
    FailureJson::new(failure).serialize(serializer)
}

/// For `#[serde(serialize_with)]`: an error, if there is one.
pub fn optional_failure<S: Serializer>(failure: &Option<Failure>, serializer: S) -> Result<S::Ok, S::Error> {
    failure.as_ref().map(FailureJson::new).serialize(serializer)
}

/// For `#[serde(serialize_with)]`: an answer, if there is one: `{"text", "value", "media"}`.
pub fn optional_output<S: Serializer>(output: &Option<Output>, serializer: S) -> Result<S::Ok, S::Error> {
    output.as_ref().map(OutputJson::new).serialize(serializer)
}

/// The same for an answer whose outer `None` stands for content that is not included.
pub(super) fn included_output<S: Serializer>(
    output: &Option<Option<Output>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    output.iter().flatten().next().map(OutputJson::new).serialize(serializer)
}

impl LimitsJson {
    fn new(limits: &Limits) -> Self {
        Self {
            max_tool_interactions: limits.max_tool_interactions,
            max_iterations: limits.max_iterations,
            max_mcp_calls: limits.max_mcp_calls,
            max_tokens: limits.max_tokens,
            max_cost_usd: limits.max_cost_usd,
            deadline_s: limits.deadline_s,
            max_corrections: limits.max_corrections,
            max_attempts: limits.max_attempts,
            max_result_bytes: limits.max_result_bytes,
        }
    }
}

impl<'a> WarningJson<'a> {
    fn new(warning: &'a RunWarning) -> Self {
        let json = Self { code: warning.code(), servers: &[], limit: None, restart: None };
        match warning {
            RunWarning::EmptyAnswer => json,
            RunWarning::LimitExceeded { limit } => Self { limit: Some(*limit), ..json },
            RunWarning::IncompleteTools { servers } => Self { servers, ..json },
            RunWarning::SessionRestarted { restart } => Self { restart: Some(*restart), ..json },
        }
    }
}

impl<'a> FailureJson<'a> {
    fn new(failure: &'a Failure) -> Self {
        let Failure { code, message, retryable, retry_after_ms, step, context, details } = failure;
        Self {
            code: *code,
            message,
            retryable: *retryable,
            retry_after_ms: *retry_after_ms,
            step: *step,
            context: context.as_deref().map(ContextJson::new),
            details: details.as_deref(),
        }
    }
}

impl<'a> ContextJson<'a> {
    fn new(FailureContext { run_id, agent, model, attempt }: &'a FailureContext) -> Self {
        Self { run_id: run_id.as_ref(), agent, model: model.as_ref(), attempt: *attempt }
    }
}

impl<'a> LeftOutJson<'a> {
    fn new(LeftOut { server, tool, reason }: &'a LeftOut) -> Self {
        Self { server: server.as_ref(), name: tool.as_deref(), reason }
    }
}

impl<'a> GrantJson<'a> {
    fn new(ToolGrant { tool, grant, arguments, when, asked_by: _, expires_at }: &'a ToolGrant) -> Self {
        let (arguments_hash, when) = (arguments.as_deref(), when.as_deref());
        Self { tool_name: tool, grant_id: grant, arguments_hash, when, expires_at: *expires_at }
    }
}

impl<'a> DifferenceJson<'a> {
    fn new(Difference { field, before, after, left_out }: &'a Difference) -> Self {
        Self { field, before, after, omitted_chars: *left_out }
    }
}

impl<'a> OutputJson<'a> {
    fn new(Output { text, value, media }: &'a Output) -> Self {
        Self { text, value: value.as_ref(), media: media.iter().map(MediaJson::new).collect() }
    }
}

impl<'a> MediaJson<'a> {
    fn new(Media { media_type, data, url }: &'a Media) -> Self {
        Self { media_type, data: data.as_deref(), url: url.as_deref() }
    }
}
