//! Events of model calls, compactions and validations.

use utoipa::ToSchema;

use crate::closed_sets::{LimitView, StopView, ToolAccessView};
use crate::runs::events::members::{CallView, EstimateView, FragmentView, ProblemView, ValidationTarget};
use crate::runs::failure::FailureView;
use crate::runs::usage::UsageView;

/// Events of model calls, compactions and validations.
#[derive(ToSchema)]
#[schema(as = ModelEventKind)]
#[serde(tag = "type")]
#[allow(dead_code)] // the lifecycle writes it; this describes what it writes
pub(crate) enum ModelEvents {
    /// A request to the model starts.
    #[serde(rename = "llm.call.started")]
    ModelCalled {
        /// The model: the run's own or a fallback.
        model: String,
        /// Whether it is a fallback for the run's own model.
        fallback: bool,
        /// The number of the attempt in its turn, from 1.
        attempt: u32,
        /// Whether the model may call tools.
        tool_access: ToolAccessView,
    },
    /// A model is asked again in the same turn: the same one or a fallback.
    #[serde(rename = "llm.call.retrying")]
    ModelRetrying {
        /// The model.
        model: String,
        /// The number of the attempt in its turn, from 1.
        attempt: u32,
        /// The model that was asked before, if it was a different one.
        instead_of: Option<String>,
    },
    /// The model answered.
    #[serde(rename = "llm.call.completed")]
    ModelReplied {
        /// The model.
        model: String,
        /// Whether it is a fallback for the run's own model.
        fallback: bool,
        /// The name of the model that the provider reports.
        response_model: Option<String>,
        /// The number of the attempt in its turn, from 1.
        attempt: u32,
        /// Why the model stopped.
        stop: StopView,
        /// Tokens and cost of the attempt.
        usage: UsageView,
        /// Tokens and cost of the run up to and including this attempt, as its limits count them.
        cumulative: UsageView,
        /// The duration of the attempt, in milliseconds.
        duration_ms: u64,
        /// The time to the first fragment, in milliseconds.
        first_token_ms: Option<u64>,
        /// The calls that the model requests.
        tool_calls: Vec<CallView>,
        /// The text of the reply; only with content.
        #[schema(nullable = false)]
        text: Option<String>,
    },
    /// A model call was not made: its worst case would exceed a hard limit, or the governor refused it.
    #[serde(rename = "llm.call.refused")]
    ModelCallRefused {
        /// The model.
        model: String,
        /// The limit.
        limit: LimitView,
        /// The reason, for people.
        reason: String,
        /// The worst case of the call.
        estimate: EstimateView,
    },
    /// An attempt at the model failed.
    #[serde(rename = "llm.call.failed")]
    ModelFailed {
        /// The model.
        model: String,
        /// The number of the attempt in its turn, from 1.
        attempt: u32,
        /// The error.
        error: FailureView,
        /// Tokens and cost of the attempt.
        usage: UsageView,
        /// Tokens and cost of the run up to and including this attempt, as its limits count them.
        cumulative: UsageView,
        /// The duration of the attempt, in milliseconds.
        duration_ms: u64,
    },
    /// A model is called for a summary of the conversation.
    #[serde(rename = "conversation.compaction.started")]
    CompactionStarted {
        /// The model.
        model: String,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The number of messages that the summary replaces.
        replaces: u64,
        /// The number of messages that are kept.
        keeps: u64,
    },
    /// Later calls read the summary in place of the replaced messages.
    #[serde(rename = "conversation.compaction.completed")]
    CompactionCompleted {
        /// The model.
        model: String,
        /// Tokens and cost of the attempt.
        usage: UsageView,
        /// Tokens and cost of the run up to and including this attempt, as its limits count them.
        cumulative: UsageView,
        /// The duration of the attempt, in milliseconds.
        duration_ms: u64,
        /// The summary; only with content.
        #[schema(nullable = false)]
        summary: Option<String>,
    },
    /// There is no summary; the turn continues without one.
    #[serde(rename = "conversation.compaction.failed")]
    CompactionFailed {
        /// The error.
        error: FailureView,
        /// Tokens and cost of the attempt.
        usage: UsageView,
        /// Tokens and cost of the run up to and including this attempt, as its limits count them.
        cumulative: UsageView,
        /// The duration of the attempt, in milliseconds.
        duration_ms: u64,
    },
    /// Arguments or an answer do not match their schema. The model reads why, unless `advisory` is true: then the call goes on.
    #[serde(rename = "validation.failed")]
    ValidationFailed {
        /// What does not match.
        target: ValidationTarget,
        /// The id of the call, for arguments.
        call_id: Option<String>,
        /// Where it does not match.
        problems: Vec<ProblemView>,
        /// Whether the call goes on.
        advisory: bool,
    },
    /// The answer matches its schema.
    #[serde(rename = "output.validated")]
    OutputValidated,
    /// A fragment of the reply's text. Sent live, and only with content.
    #[serde(rename = "llm.text.delta")]
    Text {
        #[serde(flatten)]
        fragment: FragmentView,
    },
    /// A fragment of the reply's visible reasoning. Sent live, and only with content.
    #[serde(rename = "llm.reasoning.delta")]
    Reasoning {
        #[serde(flatten)]
        fragment: FragmentView,
    },
}
