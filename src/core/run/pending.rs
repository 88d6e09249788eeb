//! Pending items of a suspended run. Derived from the journal; never written (law 8).

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Binding;
use crate::id::CallId;
use crate::policy::PolicyMark;
use crate::tool::{Annotations, Arguments, Ask, Difference, Origin, Question, TaskHandle, ToolName};

/// Pending counts of a suspended run: enough to count and sort runs without reading their journals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCounts {
    /// Calls that require approval.
    pub approvals: u32,
    /// Results that the caller has to return.
    #[serde(default)]
    pub results: u32,
    /// Questions to a person: the model's, and those of servers.
    #[serde(default)]
    pub answers: u32,
    /// Calls that run as tasks at their servers.
    #[serde(default)]
    pub tasks: u32,
    /// When the oldest of them began to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// The earliest deadline: of a pending item of any kind, or of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
}

impl PendingCounts {
    /// Whether nothing is pending and nothing expires.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts these items.
    pub fn of(items: &[PendingItem]) -> Self {
        let due_at = items.iter().filter_map(PendingItem::until).min();
        let mut pending_counts = Self { due_at, ..Self::default() };
        for item in items {
            match item {
                PendingItem::Approval { since, .. } => {
                    pending_counts.approvals += 1;
                    pending_counts.asked_at = [pending_counts.asked_at, *since].into_iter().flatten().min();
                }
                PendingItem::ExternalResult { .. } => pending_counts.results += 1,
                PendingItem::Question { .. } | PendingItem::Input { .. } => pending_counts.answers += 1,
                PendingItem::Task { .. } => pending_counts.tasks += 1,
            }
        }
        pending_counts
    }
}

/// A pending item: an input from outside that the run needs before it continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PendingItem {
    /// The caller has to run this tool and return its result.
    ExternalResult {
        /// The call; results are addressed to it.
        call_id: CallId,
        /// The caller's own name of the tool.
        tool: String,
        /// The name the model sees.
        name: ToolName,
        /// The arguments, valid by the tool's schema.
        arguments: Arguments,
        /// JSON Schema of the result, if declared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_schema: Option<Value>,
        /// When the wait began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        /// The deadline; without it, the item stays pending as long as the run lives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// This call requires approval.
    Approval {
        /// The call; decisions are addressed to it.
        call_id: CallId,
        /// The call in one line.
        summary: String,
        /// The origin of the tool.
        origin: Origin,
        /// The name the model sees.
        name: ToolName,
        /// The arguments, valid by the tool's schema.
        arguments: Arguments,
        /// The server's hints about the tool.
        annotations: Annotations,
        /// Whether the operator trusts these hints.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        trusted: bool,
        /// Hash of the tool's definition.
        definition: String,
        /// The policy rule that asks, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Why approval is required.
        why: String,
        /// The policy that asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<PolicyMark>,
        /// The differences since an earlier approval of the call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        differences: Vec<Difference>,
        /// Whether it was sent before and may have taken effect.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        in_doubt: bool,
        /// The position of the event that asks.
        event: u64,
        /// When the wait began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        /// The deadline; without it, the item stays pending as long as the run lives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The model has a question for the user.
    Question {
        /// The call; answers are addressed to it.
        call_id: CallId,
        /// The name the model sees.
        name: ToolName,
        /// The question.
        #[serde(flatten)]
        ask: Ask,
        /// The position of the event that asks.
        event: u64,
        /// When the wait began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        /// The deadline; without it, the item stays pending as long as the run lives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The tool's server requests input before it continues.
    Input {
        /// The call; answers are addressed to it.
        call_id: CallId,
        /// The origin of the tool.
        origin: Origin,
        /// The name the model sees.
        name: ToolName,
        /// The arguments of the call.
        arguments: Arguments,
        /// The questions, by the server's keys. All are answered together.
        questions: BTreeMap<String, Question>,
        /// Whether the call is made again with the answers, because the server cannot wait for them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        restarts: bool,
        /// Whether the call had begun when it was cancelled and its tool is not known to be safe to repeat: answers are
        /// accepted only with explicit consent to sending it a second time.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        repeats: bool,
        /// Whether the call is running and held open, so that it receives the answers directly.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        held: bool,
        /// Until when it is held; `None` for as long as its driver waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_until: Option<Timestamp>,
    },
    /// The call runs as a task at the tool's server. No answer is required: the run continues when the server is done.
    Task {
        /// The call.
        call_id: CallId,
        /// The origin of the tool.
        origin: Origin,
        /// The name the model sees.
        name: ToolName,
        /// The arguments of the call.
        arguments: Arguments,
        /// The task.
        task: TaskHandle,
    },
}

impl PendingItem {
    /// The call it belongs to.
    pub fn call_id(&self) -> &CallId {
        match self {
            Self::ExternalResult { call_id, .. }
            | Self::Approval { call_id, .. }
            | Self::Question { call_id, .. }
            | Self::Input { call_id, .. }
            | Self::Task { call_id, .. } => call_id,
        }
    }

    /// The kind, as in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ExternalResult { .. } => "external_result",
            Self::Approval { .. } => "approval",
            Self::Question { .. } => "question",
            Self::Input { .. } => "input",
            Self::Task { .. } => "task",
        }
    }

    /// The name the model sees.
    pub fn name(&self) -> &ToolName {
        match self {
            Self::ExternalResult { name, .. }
            | Self::Approval { name, .. }
            | Self::Question { name, .. }
            | Self::Input { name, .. }
            | Self::Task { name, .. } => name,
        }
    }

    /// The arguments of the call.
    pub fn arguments(&self) -> Cow<'_, Arguments> {
        match self {
            Self::ExternalResult { arguments, .. }
            | Self::Approval { arguments, .. }
            | Self::Input { arguments, .. }
            | Self::Task { arguments, .. } => Cow::Borrowed(arguments),
            Self::Question { ask, .. } => {
                Cow::Owned(Arguments::from_value(serde_json::to_value(ask).unwrap_or_default()))
            }
        }
    }

    /// When the wait began, if the time of the events is known.
    pub fn since(&self) -> Option<Timestamp> {
        match self {
            Self::ExternalResult { since, .. } | Self::Approval { since, .. } | Self::Question { since, .. } => *since,
            Self::Input { .. } | Self::Task { .. } => None,
        }
    }

    /// Its deadline; `None` if it stays pending as long as the run lives.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::ExternalResult { until, .. } | Self::Approval { until, .. } | Self::Question { until, .. } => *until,
            Self::Input { .. } | Self::Task { .. } => None,
        }
    }

    /// The content that a decision would be bound to; `None` unless it waits for a decision. An approver sends its
    /// digest back as `digest`.
    pub fn binding(&self) -> Option<Binding> {
        let Self::Approval { origin, definition, arguments, policy, event, .. } = self else { return None };
        Some(Binding {
            origin: origin.clone(),
            definition: definition.clone(),
            arguments: arguments.hash(),
            policy: policy.clone(),
            event: *event,
        })
    }

    /// Whether it is a question on a call that is held open for the answer.
    pub fn is_held(&self) -> bool {
        match self {
            Self::Input { held, .. } => *held,
            Self::ExternalResult { .. } | Self::Approval { .. } | Self::Question { .. } | Self::Task { .. } => false,
        }
    }

    /// Whether the user or the caller has to answer it. A task settles without an answer.
    pub fn wants_answer(&self) -> bool {
        match self {
            Self::ExternalResult { .. } | Self::Approval { .. } | Self::Question { .. } | Self::Input { .. } => true,
            Self::Task { .. } => false,
        }
    }
}
