//! What a run is owed, as the API shows it. The names are those of the command line's JSON.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::core::id::RunId;
use crate::core::run::Debt;
use crate::core::tool::{Annotations, Difference, Origin, Question};
use crate::gateway::tenant::Place;

/// One thing that has to come from outside before a run goes on.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = Pending)]
pub(in crate::gateway) enum PendingView {
    /// You are to run this tool, and return its result in `results`.
    ExternalResult {
        /// What the result is addressed to.
        call_id: String,
        /// Your own name of the tool.
        tool: String,
        /// The name the model sees.
        name: String,
        /// Valid by the tool's schema.
        #[schema(value_type = Object)]
        arguments: Value,
        /// What the result has to fit, if you said.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Object>)]
        result_schema: Option<Value>,
        /// Since when it waits.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = DateTime)]
        since: Option<Timestamp>,
        /// Until when there is time.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = DateTime)]
        until: Option<Timestamp>,
    },
    /// A person is to decide whether this call is made; the answer goes into `decisions`.
    Approval(ApprovalView),
    /// The model asks a person something; the answer goes into `answers`.
    Question {
        /// What the answer is addressed to.
        call_id: String,
        /// The question.
        question: String,
        /// What there is to choose from; none means that the answer is text.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// Whether more than one may be chosen.
        multiple: bool,
        /// Whether the answer may be in one's own words.
        free_text: bool,
        /// Since when it waits.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = DateTime)]
        since: Option<Timestamp>,
        /// Until when there is time.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = DateTime)]
        until: Option<Timestamp>,
    },
    /// A tool's server wants to know something before it goes on; the answers go into `inputs`.
    Input {
        /// What the answers are addressed to.
        call_id: String,
        /// Who asks.
        origin: OriginView,
        /// The name the model sees.
        name: String,
        /// The arguments of the call.
        #[schema(value_type = Object)]
        arguments: Value,
        /// What is asked, by the server's keys. All are answered together.
        questions: BTreeMap<String, FormView>,
        /// Whether the call is sent again from its beginning with the answers.
        restarts: bool,
        /// Whether the call had begun, and may run twice: answers that accept anything are taken only with `"repeat": true`.
        repeats: bool,
        /// Whether the call is held open: answers reach it in place, and the run is at work meanwhile.
        held: bool,
        /// Until when it is held; then it is cancelled, and the run is pending.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = DateTime)]
        held_until: Option<Timestamp>,
    },
    /// A tool's server goes on with a call by itself. Nobody has to answer.
    Task {
        /// The call.
        call_id: String,
        /// Where it is under way.
        origin: OriginView,
        /// The name the model sees.
        name: String,
        /// The arguments of the call.
        #[schema(value_type = Object)]
        arguments: Value,
        /// The server's id of the task.
        task_id: String,
        /// What the server says of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

/// A call that waits for a decision.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PendingApproval)]
pub(in crate::gateway) struct ApprovalView {
    /// The call; decisions of a resume are addressed to it.
    call_id: String,
    /// The approval in the inbox.
    approval_id: String,
    /// The call in one line.
    summary: String,
    /// What would run.
    origin: OriginView,
    /// The name the model sees.
    name: String,
    /// Valid by the tool's schema.
    #[schema(value_type = Object)]
    arguments: Value,
    /// The server's hints about the tool.
    annotations: AnnotationsView,
    /// Whether the operator believes these hints.
    trusted: bool,
    /// Hash of the tool's definition.
    definition: String,
    /// The policy rule that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// Why a person is asked.
    why: String,
    /// What has become different since the call was approved before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<DifferenceView>,
    /// Whether it was sent before, and may have taken effect.
    in_doubt: bool,
    /// Digest of all that a decision is about. Send it back in `seen`, and a decision about anything else is refused.
    seen: String,
    /// Since when it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Until when there is time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
}

/// Who runs a tool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = Origin)]
pub(in crate::gateway) enum OriginView {
    /// An MCP server.
    Mcp {
        /// The configured server.
        server: String,
        /// What the server calls the tool.
        tool: String,
    },
    /// The calling application.
    External {
        /// What it calls the tool.
        tool: String,
    },
    /// toolgate itself.
    Builtin {
        /// The tool.
        tool: String,
    },
}

/// Hints of a server about a tool, as MCP names them.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Annotations)]
pub(in crate::gateway) struct AnnotationsView {
    /// A title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only_hint: Option<bool>,
    /// It may destroy.
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent_hint: Option<bool>,
    /// It reaches an open world.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world_hint: Option<bool>,
}

/// One thing that is not as it was.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Difference)]
pub(in crate::gateway) struct DifferenceView {
    /// What, in words.
    what: String,
    /// What it was, from the first change to the last one.
    was: String,
    /// What it is.
    is: String,
    /// How many more characters may differ, and are not shown.
    left_out: usize,
}

/// A question of a server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
#[schema(as = ServerQuestion)]
pub(in crate::gateway) enum FormView {
    /// Fill in this form.
    Form {
        /// What is asked.
        message: String,
        /// JSON Schema of the answer.
        #[schema(value_type = Object)]
        schema: Value,
    },
    /// Do something at this address, and say when it is done.
    Url {
        /// What is asked.
        message: String,
        /// The address. It is the server's word: show it before it is opened.
        url: String,
    },
}

impl PendingView {
    pub(in crate::gateway) fn of(run: &RunId, debt: &Debt) -> Self {
        let call_id = debt.call_id().to_string();
        let name = debt.name().to_string();
        let arguments = debt.arguments().to_value();
        let (since, until) = (debt.since(), debt.until());
        match debt {
            Debt::ExternalResult { tool, result_schema, .. } => {
                let (tool, result_schema) = (tool.clone(), result_schema.clone());
                Self::ExternalResult { call_id, tool, name, arguments, result_schema, since, until }
            }
            Debt::Approval {
                summary,
                origin,
                annotations,
                trusted,
                definition,
                rule,
                why,
                differences,
                in_doubt,
                event,
                ..
            } => Self::Approval(ApprovalView {
                call_id,
                approval_id: Place { run: run.clone(), event: *event }.to_string(),
                summary: summary.clone(),
                origin: OriginView::of(origin),
                name,
                arguments,
                annotations: AnnotationsView::of(annotations),
                trusted: *trusted,
                definition: definition.clone(),
                rule: rule.clone(),
                why: why.clone(),
                differences: differences.iter().map(DifferenceView::of).collect(),
                in_doubt: *in_doubt,
                seen: debt.binding().map(|binding| binding.digest(run, debt.call_id())).unwrap_or_default(),
                since,
                until,
            }),
            Debt::Question { ask, .. } => Self::Question {
                call_id,
                question: ask.question.clone(),
                options: ask.options.clone(),
                multiple: ask.multiple,
                free_text: ask.free_text,
                since,
                until,
            },
            Debt::Input { origin, questions, restarts, repeats, held, held_until, .. } => Self::Input {
                call_id,
                origin: OriginView::of(origin),
                name,
                arguments,
                questions: questions.iter().map(|(key, question)| (key.clone(), FormView::of(question))).collect(),
                restarts: *restarts,
                repeats: *repeats,
                held: *held,
                held_until: *held_until,
            },
            Debt::Task { origin, task, .. } => Self::Task {
                call_id,
                origin: OriginView::of(origin),
                name,
                arguments,
                task_id: task.id.clone(),
                message: task.message.clone(),
            },
        }
    }
}

impl OriginView {
    pub(in crate::gateway) fn of(origin: &Origin) -> Self {
        match origin.clone() {
            Origin::Mcp { server, tool } => Self::Mcp { server: server.to_string(), tool },
            Origin::External { tool } => Self::External { tool },
            Origin::Builtin { tool } => Self::Builtin { tool },
        }
    }
}

impl AnnotationsView {
    pub(in crate::gateway) fn of(hints: &Annotations) -> Self {
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
    fn of(difference: &Difference) -> Self {
        let Difference { what, was, is, left_out } = difference.clone();
        Self { what, was, is, left_out }
    }
}

impl FormView {
    fn of(question: &Question) -> Self {
        match question.clone() {
            Question::Form { message, schema } => Self::Form { message, schema },
            Question::Url { message, url } => Self::Url { message, url },
        }
    }
}
