//! The API view of pending items. The names are those of the command line's JSON.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::id::RunId;
use toolgate_core::policy::OnTimeout;
use toolgate_core::run::{PendingCounts, PendingItem, PendingQuestion};
use toolgate_core::timestamp::optional_millis;
use toolgate_core::tool::{Annotations, Difference, Question, ToolRef};
use toolgate_service::ApprovalId;
use utoipa::ToSchema;

use crate::closed_sets::OnTimeoutView;

/// A pending item: an action that is required before a run continues.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = Pending)]
pub(crate) enum PendingView {
    /// Run this tool yourself, and send its result as an answer of type `result`.
    ExternalResult {
        /// The call id for the result.
        call_id: String,
        /// The tool; its `name` is your own.
        #[schema(value_type = ToolDescription)]
        tool: ToolRef,
        /// The name that the model sees.
        tool_name: String,
        /// The arguments, which are valid by the tool's schema.
        #[schema(value_type = Object)]
        arguments: Value,
        /// The JSON Schema that the result has to match, if you declared one.
        #[schema(value_type = Option<Object>)]
        result_schema: Option<Value>,
        /// When the item became pending.
        #[schema(value_type = Option<String>, format = DateTime)]
        #[serde(serialize_with = "optional_millis")]
        requested_at: Option<Timestamp>,
        /// When the item expires.
        #[schema(value_type = Option<String>, format = DateTime)]
        #[serde(serialize_with = "optional_millis")]
        expires_at: Option<Timestamp>,
    },
    /// A call requires approval; send the decision as an answer of type `decision`.
    Approval(PendingApprovalView),
    /// The model asks a person a question; send the answer as one of type `answer`.
    Question {
        /// The call id for the answer.
        call_id: String,
        /// The tool with which the model asks.
        #[schema(value_type = ToolDescription)]
        tool: ToolRef,
        /// The name that the model sees.
        tool_name: String,
        /// The question.
        question: String,
        /// The options to choose from; if the list is empty, the answer is text.
        options: Vec<String>,
        /// Whether more than one option may be chosen.
        multiple: bool,
        /// Whether the answer may be text of the person's own.
        free_text: bool,
        /// When the item became pending.
        #[schema(value_type = Option<String>, format = DateTime)]
        #[serde(serialize_with = "optional_millis")]
        requested_at: Option<Timestamp>,
        /// When the item expires.
        #[schema(value_type = Option<String>, format = DateTime)]
        #[serde(serialize_with = "optional_millis")]
        expires_at: Option<Timestamp>,
    },
    /// An MCP server requests input before a call continues; send the responses as an answer of type `elicitation`.
    #[serde(rename = "elicitation")]
    Input {
        /// The call id for the answers.
        call_id: String,
        /// The tool whose server requests input.
        #[schema(value_type = ToolDescription)]
        tool: ToolRef,
        /// The name that the model sees.
        tool_name: String,
        /// The arguments of the call.
        #[schema(value_type = Object)]
        arguments: Value,
        /// The requests, by the server's keys. Answer all of them together.
        questions: BTreeMap<String, FormView>,
        /// Whether the answers are sent with a new call, which begins again.
        restarts: bool,
        /// Whether the call was in progress before, and may run twice: answers with `accept` then also need
        /// `"repeat": true`.
        repeats: bool,
        /// Whether the server keeps the call open: the answers reach the same call, and the run is `running` meanwhile.
        held: bool,
        /// Until when the call is kept open; after that it is cancelled, and the run becomes pending.
        #[schema(value_type = Option<String>, format = DateTime)]
        #[serde(serialize_with = "optional_millis")]
        held_until: Option<Timestamp>,
    },
    /// An MCP server continues a call in the background, as a task. No action is required.
    Task {
        /// The id of the call.
        call_id: String,
        /// The tool whose server runs the task.
        #[schema(value_type = ToolDescription)]
        tool: ToolRef,
        /// The name that the model sees.
        tool_name: String,
        /// The arguments of the call.
        #[schema(value_type = Object)]
        arguments: Value,
        /// The server's id of the task.
        task_id: String,
        /// The server's status message.
        message: Option<String>,
    },
    /// The run was paused; continue it with `"continue": true`.
    Pause {
        /// The person or program that paused the run.
        by: String,
        /// The reason, if one was given.
        reason: Option<String>,
        /// When the run was paused.
        #[schema(value_type = Option<String>, format = DateTime)]
        #[serde(serialize_with = "optional_millis")]
        requested_at: Option<Timestamp>,
    },
}

/// A call that requires approval.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PendingApproval)]
pub(crate) struct PendingApprovalView {
    /// The id of the call, for decisions in a resume.
    call_id: String,
    /// The approval's id in the inbox.
    approval_id: String,
    /// The call in one line.
    summary: String,
    /// The tool.
    #[schema(value_type = ToolDescription)]
    tool: ToolRef,
    /// The name that the model sees.
    tool_name: String,
    /// The arguments, which are valid by the tool's schema unless there are `problems`.
    #[schema(value_type = Object)]
    arguments: Value,
    /// Why the arguments do not match the tool's schema, at a server whose validation is advisory.
    problems: Vec<String>,
    /// The server's hints about the tool.
    annotations: AnnotationsView,
    /// Whether the operator trusts these hints.
    trusted: bool,
    /// Hash of the tool's definition.
    definition_hash: String,
    /// The policy rule that requires the approval.
    rule: Option<String>,
    /// Why the call requires approval.
    reason: String,
    /// What has changed since the call was approved before.
    differences: Vec<DifferenceView>,
    /// Whether the call was sent before, and may have taken effect.
    outcome_unknown: bool,
    /// Digest of everything that a decision depends on. Send it back in `digest`; if the call has changed since, the
    /// decision is refused.
    digest: String,
    /// When the item became pending.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    requested_at: Option<Timestamp>,
    /// When the item expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    expires_at: Option<Timestamp>,
    /// The policy's decision if the item expires.
    #[schema(value_type = OnTimeoutView)]
    on_timeout: OnTimeout,
}

/// A tool.
#[derive(ToSchema)]
#[schema(as = ToolRef)]
#[allow(dead_code)] // core writes it; this describes what it writes
pub(crate) struct ToolDescription {
    /// Where the tool runs.
    r#type: ToolType,
    /// The configured id of its MCP server; only with `mcp`.
    server: Option<String>,
    /// The name that the server, or your application, has for the tool.
    name: String,
    /// The title for people, if the tool has one.
    title: Option<String>,
}

/// Where a tool runs.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolType {
    /// An MCP server.
    Mcp,
    /// The client application.
    External,
    /// toolgate itself.
    Builtin,
}

/// The server's hints about a tool, as MCP defines them.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Annotations)]
pub(crate) struct AnnotationsView {
    /// A title for people.
    title: Option<String>,
    /// The tool changes nothing.
    read_only_hint: Option<bool>,
    /// The tool may be destructive.
    destructive_hint: Option<bool>,
    /// A repeated call with the same arguments has no further effect.
    idempotent_hint: Option<bool>,
    /// The tool reaches an open world.
    open_world_hint: Option<bool>,
}

/// A difference to the call that was approved.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Difference)]
pub(crate) struct DifferenceView {
    /// The part that differs, in words.
    field: String,
    /// The old value, from the first difference to the last one.
    before: String,
    /// The new value.
    after: String,
    /// How many further characters may differ, which are not shown.
    omitted_chars: usize,
}

/// An elicitation request of a server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
#[schema(as = ServerQuestion)]
pub(crate) enum FormView {
    /// A form to fill in.
    Form {
        /// The server's message.
        message: String,
        /// JSON Schema of the answer.
        #[schema(value_type = Object)]
        schema: Value,
    },
    /// An address to open; accept the request when the person has finished there.
    Url {
        /// The server's message.
        message: String,
        /// The address. It comes from the server: show it before you open it.
        url: String,
    },
}

/// The number of pending items of each kind.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PendingCounts)]
pub(crate) struct PendingCountsView {
    /// Approvals.
    approvals: u32,
    /// Results of external tools.
    results: u32,
    /// Answers to questions of the model or to elicitation requests of servers, and pauses to end.
    answers: u32,
    /// Tasks that MCP servers run in the background.
    tasks: u32,
}

impl PendingCountsView {
    pub(super) fn new(counts: &PendingCounts) -> Self {
        let PendingCounts { approvals, results, answers, tasks, .. } = *counts;
        Self { approvals, results, answers, tasks }
    }
}

impl PendingView {
    pub(crate) fn new(run: &RunId, item: &PendingItem) -> Self {
        let (requested_at, expires_at) = (item.requested_at(), item.expires_at());
        match item {
            PendingItem::ExternalResult(item) => Self::ExternalResult {
                call_id: item.call_id.to_string(),
                tool: item.tool.clone(),
                tool_name: item.tool_name.to_string(),
                arguments: item.arguments.to_value(),
                result_schema: item.result_schema.clone(),
                requested_at,
                expires_at,
            },
            PendingItem::Approval(approval) => Self::Approval(PendingApprovalView {
                call_id: approval.call_id.to_string(),
                approval_id: ApprovalId { run: run.clone(), event: approval.event }.to_string(),
                summary: approval.summary.clone(),
                tool: approval.tool.clone(),
                tool_name: approval.tool_name.to_string(),
                arguments: approval.arguments.to_value(),
                problems: approval
                    .problems
                    .iter()
                    .map(|problem| format!("{}: {}", problem.path, problem.message))
                    .collect(),
                annotations: AnnotationsView::new(&approval.annotations),
                trusted: approval.trusted,
                definition_hash: approval.definition_hash.clone(),
                rule: approval.rule.clone(),
                reason: approval.reason.clone(),
                differences: approval.differences.iter().map(DifferenceView::new).collect(),
                outcome_unknown: approval.outcome_unknown,
                digest: item.binding().map(|binding| binding.digest(run, &approval.call_id)).unwrap_or_default(),
                requested_at,
                expires_at,
                on_timeout: approval.on_timeout,
            }),
            PendingItem::Question(PendingQuestion { call_id, tool, tool_name, ask, .. }) => Self::Question {
                call_id: call_id.to_string(),
                tool: tool.clone(),
                tool_name: tool_name.to_string(),
                question: ask.question.clone(),
                options: ask.options.clone(),
                multiple: ask.multiple,
                free_text: ask.free_text,
                requested_at,
                expires_at,
            },
            PendingItem::Input(input) => Self::Input {
                call_id: input.call_id.to_string(),
                tool: input.tool.clone(),
                tool_name: input.tool_name.to_string(),
                arguments: input.arguments.to_value(),
                questions: input.questions.iter().map(|(key, asked)| (key.clone(), FormView::new(asked))).collect(),
                restarts: input.restarts,
                repeats: input.repeats,
                held: input.held,
                held_until: input.held_until,
            },
            PendingItem::Task(task) => Self::Task {
                call_id: task.call_id.to_string(),
                tool: task.tool.clone(),
                tool_name: task.tool_name.to_string(),
                arguments: task.arguments.to_value(),
                task_id: task.task.id.clone(),
                message: task.task.message.clone(),
            },
            PendingItem::Pause(pause) => {
                Self::Pause { by: pause.by.clone(), reason: pause.reason.clone(), requested_at }
            }
        }
    }
}

impl AnnotationsView {
    pub(crate) fn new(hints: &Annotations) -> Self {
        Self {
            title: hints.title.clone(),
            read_only_hint: hints.read_only_hint,
            destructive_hint: hints.destructive_hint,
            idempotent_hint: hints.idempotent_hint,
            open_world_hint: hints.open_world_hint,
        }
    }
}

impl DifferenceView {
    fn new(difference: &Difference) -> Self {
        let Difference { field, before, after, left_out } = difference.clone();
        Self { field, before, after, omitted_chars: left_out }
    }
}

impl FormView {
    fn new(question: &Question) -> Self {
        match question.clone() {
            Question::Form { message, schema } => Self::Form { message, schema },
            Question::Url { message, url } => Self::Url { message, url },
        }
    }
}
