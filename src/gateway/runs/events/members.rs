//! The API description of what events contain: calls, their ends, pending items, and the details of single types.

use serde_json::Value;
use utoipa::ToSchema;

use crate::closed_sets::{StoredFormView, ToolErrorView};
use crate::runs::pending::ToolDescription;

/// A call, as the model requested it.
#[derive(ToSchema)]
#[schema(as = CallRef)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct CallView {
    /// The id of the call.
    call_id: String,
    /// The name that the model wrote.
    tool_name: String,
    /// The tool; null if there is no such tool.
    tool: Option<ToolDescription>,
    /// The priority of the tool.
    priority: Option<i32>,
    /// The arguments; only with content.
    #[schema(value_type = Option<Value>)]
    arguments: Option<Value>,
}

/// A call that undoes another one.
#[derive(ToSchema)]
#[schema(as = UndoRef)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct UndoRefView {
    /// The id of the call that it undoes.
    undoes: String,
    #[serde(flatten)]
    call: CallView,
}

/// The end of a call.
#[derive(ToSchema)]
#[schema(as = CallEnd)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct CallEndView {
    /// Whether the call failed.
    is_error: bool,
    /// The type of the error, if the call failed.
    error: Option<ToolErrorView>,
    /// The size of the result's text in bytes, including text that is not shown.
    result_bytes: u64,
    /// The text of the result; only with content.
    #[schema(nullable = false)]
    result: Option<String>,
    /// Parts of the result that are stored outside the journal.
    kept: Vec<StoredView>,
}

/// A part of a result that is stored outside the journal.
#[derive(ToSchema)]
#[schema(as = StoredContent)]
#[allow(dead_code)] // core writes it; this describes what it writes
struct StoredView {
    /// The SHA-256 of the bytes: 64 hex digits, as in the path of the run's blobs.
    handle: String,
    /// The media type.
    media_type: String,
    /// The size in bytes.
    bytes: u64,
    /// The part of the result.
    form: StoredFormView,
}

/// A pending item of a run.
#[derive(ToSchema)]
#[schema(as = PendingRef)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) enum PendingRefView {
    /// A call whose result your application returns.
    ExternalResult(CallView),
    /// A call that requires approval.
    Approval(CallView),
    /// A question of the model.
    Question(CallView),
    /// A call whose server requests input.
    Elicitation(CallView),
    /// A call that its server continues as a task.
    Task(CallView),
    /// A pause of the run.
    Pause,
}

/// A tool or server that is not available.
#[derive(ToSchema)]
#[schema(as = SkippedRef)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct SkippedView {
    /// The configured id of the server, for MCP tools.
    server: Option<String>,
    /// The server's name of the tool; null if the whole server is not available, or the rest of its tools.
    name: Option<String>,
    /// The error and its remedy.
    reason: String,
}

/// A grant that covers a tool.
#[derive(ToSchema)]
#[schema(as = ToolGrant)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct ToolGrantView {
    /// The name that the model sees.
    tool_name: String,
    /// The grant's id.
    grant_id: String,
    /// Hash of the only arguments that the grant covers.
    arguments_hash: Option<String>,
    /// The condition that covered calls meet.
    when: Option<String>,
    /// When the grant expires.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// The worst case of a model call.
#[derive(ToSchema)]
#[schema(as = CallEstimate)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct EstimateView {
    /// Input tokens.
    input_tokens: u64,
    /// The output limit of the request, if it has one.
    output_tokens: Option<u64>,
    /// The cost of both in US dollars as decimal text, if the price is known.
    cost_usd: Option<String>,
}

/// A place where a value does not match its schema.
#[derive(ToSchema)]
#[schema(as = ValidationProblem)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct ProblemView {
    /// The place, as a JSON Pointer; empty for the whole value.
    path: String,
    /// The violated rule: a keyword of JSON Schema, or a validator's own name for it.
    rule: String,
    /// The problem, for people; empty without content.
    message: String,
    /// The received value, if it is short; only with content.
    #[schema(value_type = Option<Value>)]
    received: Option<Value>,
}

/// What is validated.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) enum ValidationTarget {
    /// The arguments of a call.
    Arguments,
    /// The answer of the run.
    Output,
}

/// A difference to the call that was approved.
#[derive(ToSchema)]
#[schema(as = DriftDifference)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct ChangedView {
    /// The part that differs, in words.
    field: String,
    /// The old value, from the first difference to the last one.
    before: String,
    /// The new value.
    after: String,
    /// How many further characters may differ, which are not shown.
    omitted_chars: usize,
}

/// The limits of a run.
#[derive(ToSchema)]
#[schema(as = RunLimits)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(crate) struct RunLimitsView {
    /// Turns with tools, and rejected answers.
    max_tool_interactions: u32,
    /// Turns of the model.
    max_iterations: u32,
    /// Calls sent to MCP servers.
    max_mcp_calls: Option<u32>,
    /// Input and output tokens.
    max_tokens: Option<u64>,
    /// US dollars, as decimal text.
    max_cost_usd: Option<String>,
    /// Seconds from the start of the run.
    deadline_s: Option<u64>,
    /// Corrections of an answer.
    max_corrections: u32,
    /// Attempts at the model in a turn.
    max_attempts: u32,
    /// The size of a result that the model reads, in bytes.
    max_result_bytes: u64,
}

/// A fragment of a reply.
#[derive(ToSchema)]
#[schema(as = Fragment)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(super) struct FragmentView {
    /// The model that is asked: the run's own or a fallback.
    model: String,
    /// The number of the attempt in its turn, from 1.
    attempt: u32,
    /// The number of characters before the fragment. 0 begins the text or the reasoning again.
    index: u64,
    /// The `index` of the next fragment of the same kind.
    next_index: u64,
    /// The text of the fragment.
    text: String,
}
