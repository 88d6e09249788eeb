//! Call outcomes: the results of calls that were run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Problem, StoredContent};
use crate::chat::Part;
use crate::json;

/// The end of a call that was handed to a server or to the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool answered; its answer may itself report an error.
    Returned(ToolOutput),
    /// The tool did not answer.
    Failed(CallFailure),
    /// The call was started and its outcome is unknown (law 4).
    Unknown,
}

/// A tool's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The content that the model reads.
    pub content: Vec<Part>,
    /// The structured form, if the tool gave one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub structured: Option<Value>,
    /// Whether the tool reports an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The content that is stored outside the journal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<StoredContent>,
    /// Violations of MCP in its content (pointers into the result), and of the tool's output schema in the structured
    /// form (pointers into that form).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// The reason why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFailure {
    /// The kind, for machines.
    pub kind: FailureKind,
    /// The cause and the remedy, for the model and for people.
    pub message: String,
}

/// The kinds of call failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The server refused the call with a protocol error.
    Refused,
    /// No answer within the call's deadline.
    Timeout,
    /// The connection broke or the process died during the call.
    Disconnected,
    /// The server is not available, or no longer has the tool.
    Unavailable,
    /// The tool's definition is no longer the one that the model saw.
    Changed,
    /// The answer could not be read as an MCP result.
    Unreadable,
    /// The run was cancelled during the call.
    Cancelled,
    /// The code that made the call panicked.
    Panicked,
    Abandoned,
    /// The caller returned no result in time.
    Expired,
}

impl FailureKind {
    /// Its stable name, as in `error.type` of a span.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Disconnected => "disconnected",
            Self::Unavailable => "unavailable",
            Self::Changed => "changed",
            Self::Unreadable => "unreadable",
            Self::Cancelled => "cancelled",
            Self::Panicked => "panicked",
            Self::Abandoned => "abandoned",
            Self::Expired => "expired",
        }
    }
}

impl ToolOutput {
    /// A successful text answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Part::text(text)], ..Self::default() }
    }

    /// All text parts, concatenated.
    pub fn joined_text(&self) -> String {
        self.content.iter().filter_map(Part::as_text).collect()
    }

    /// An answer from any JSON value: a string is text, any other value its JSON. Stored in both forms.
    pub fn from_value(value: Value) -> Self {
        let text = match &value {
            Value::String(text) => text.clone(),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        };
        Self { content: vec![Part::text(text)], structured: Some(value), ..Self::default() }
    }

    /// A text answer by which the tool reports an error.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }
}

impl Outcome {
    /// A failure of the given kind.
    pub fn failed(kind: FailureKind, message: impl Into<String>) -> Self {
        Self::Failed(CallFailure { kind, message: message.into() })
    }

    /// Whether the model reads an error.
    pub fn is_error(&self) -> bool {
        match self {
            Self::Returned(output) => output.is_error,
            Self::Failed(_) | Self::Unknown => true,
        }
    }

    /// Whether the call may have taken effect although it has no answer.
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Returned(_) => false,
            Self::Unknown => true,
            Self::Failed(failure) => match failure.kind {
                FailureKind::Timeout
                | FailureKind::Disconnected
                | FailureKind::Unreadable
                | FailureKind::Cancelled
                | FailureKind::Panicked
                | FailureKind::Abandoned
                | FailureKind::Expired => true,
                FailureKind::Refused | FailureKind::Unavailable | FailureKind::Changed => false,
            },
        }
    }

    /// The stable name of its error, as in `error.type` of a span; `None` without an error.
    pub fn error_type(&self) -> Option<&'static str> {
        match self {
            Self::Returned(output) => output.is_error.then_some("tool_error"),
            Self::Failed(failure) => Some(failure.kind.as_str()),
            Self::Unknown => Some("unknown"),
        }
    }

    /// The content that is stored outside the journal.
    pub fn stored(&self) -> &[StoredContent] {
        match self {
            Self::Returned(output) => &output.kept,
            Self::Failed(_) | Self::Unknown => &[],
        }
    }

    /// Violations of MCP, and of the tool's output schema by the structured form.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Returned(output) => &output.problems,
            Self::Failed(_) | Self::Unknown => &[],
        }
    }

    /// The content that the model reads.
    pub fn content(&self) -> Vec<Part> {
        match self {
            Self::Returned(output) => output.content.clone(),
            Self::Failed(failure) => vec![Part::text(failure.message.clone())],
            Self::Unknown => vec![Part::text(
                "Outcome unknown: the call was sent, and toolgate stopped before an answer arrived. It may or may not \
                 have taken effect. Check before you call it again.",
            )],
        }
    }
}
