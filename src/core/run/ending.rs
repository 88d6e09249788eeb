//! Run endings and run status.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Limit;
use crate::chat::{Media, Part};
use crate::error::{ErrorCode, Failure};
use crate::json;

/// The last event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Ending {
    /// The model gave a final answer, and it was valid.
    Completed {
        output: Output,
    },
    Failed {
        error: Failure,
    },
    Cancelled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The text of the reply that the cancellation stopped, as far as the model had streamed it to the process that
        /// cancelled; `None` if no model was replying, or only to another process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial_reply: Option<String>,
    },
    /// A hard limit was reached. The transcript holds all results so far.
    #[serde(alias = "turn_limit")]
    Incomplete {
        limit: Limit,
        /// The last answer, given without tools, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Output>,
    },
    /// The input that it waited for did not arrive in time.
    Expired,
}

/// A final answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The text as the model wrote it; empty when it answered with media alone.
    pub text: String,
    /// The parsed text, when an output schema was given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub value: Option<Value>,
    /// The media of the answer, in order; media that the model produced are handles of blobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
}

impl Output {
    /// The output of these parts of a reply.
    pub fn from_parts(parts: &[Part]) -> Self {
        Self {
            text: parts.iter().filter_map(Part::as_text).collect(),
            value: None,
            media: parts.iter().filter_map(Part::as_media).collect(),
        }
    }

    /// Whether it has no content.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.media.is_empty()
    }

    /// Whether it has neither a word nor media.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty() && self.media.is_empty()
    }
}

impl Ending {
    /// The status after this ending.
    pub fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed { .. } => Status::Failed,
            Self::Cancelled { .. } => Status::Cancelled,
            Self::Incomplete { .. } => Status::Incomplete,
            Self::Expired => Status::Expired,
        }
    }

    /// The answer, if there is one.
    pub fn output(&self) -> Option<&Output> {
        match self {
            Self::Completed { output } => Some(output),
            Self::Incomplete { output, .. } => output.as_ref(),
            Self::Failed { .. } | Self::Cancelled { .. } | Self::Expired => None,
        }
    }

    /// The hard limit that ended the run.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Incomplete { limit, .. } => Some(*limit),
            Self::Completed { .. } | Self::Failed { .. } | Self::Cancelled { .. } | Self::Expired => None,
        }
    }

    /// The failure, unless the run completed.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Completed { .. } => None,
            Self::Failed { error } => Some(error.clone()),
            Self::Cancelled { reason, .. } => {
                let why = reason.as_deref().unwrap_or("no reason was given");
                Some(Failure::new(ErrorCode::Cancelled, format!("the run was cancelled: {why}")))
            }
            Self::Incomplete { limit, .. } => {
                Some(Failure::new(ErrorCode::TurnLimit, format!("the run reached its limit `{}`", limit.name())))
            }
            Self::Expired => {
                Some(Failure::new(ErrorCode::Expired, "the input that the run waited for did not arrive in time"))
            }
        }
    }
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// There is work to do; a driver is executing the run or will.
    Running,
    /// The run waits for required actions or tasks.
    Pending,
    /// Ended with a valid answer.
    Completed,
    /// Ended with an error.
    Failed,
    /// Ended by a cancellation.
    Cancelled,
    /// Ended at a hard limit.
    #[serde(alias = "turn_limit")]
    Incomplete,
    /// Ended because a wait exceeded its time.
    Expired,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 7] =
        [Self::Running, Self::Pending, Self::Completed, Self::Failed, Self::Cancelled, Self::Incomplete, Self::Expired];

    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Incomplete => "incomplete",
            Self::Expired => "expired",
        }
    }

    /// Parses a status.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the run is over.
    pub fn is_ended(self) -> bool {
        match self {
            Self::Running | Self::Pending => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Incomplete | Self::Expired => true,
        }
    }
}
