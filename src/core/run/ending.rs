//! How a run ends.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Limit;
use crate::core::chat::{Media, Part};
use crate::core::error::{ErrorCode, Failure};
use crate::core::json;

/// The last fact of a run. Nothing follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Ending {
    /// The model gave a final answer, and it was valid.
    Completed {
        /// The answer.
        output: Output,
    },
    /// It could not go on.
    Failed {
        /// Why.
        error: Failure,
    },
    /// Somebody stopped it.
    Cancelled {
        /// Why, if they said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A hard limit was reached. Everything gathered is in the transcript.
    TurnLimit {
        /// Which one.
        limit: Limit,
        /// The last answer, given without tools, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Output>,
    },
    /// What it waited for did not come in time.
    Expired,
}

/// A final answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// As the model wrote it; empty when it answered with media alone.
    pub text: String,
    /// Parsed, when an output schema was given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub value: Option<Value>,
    /// The media in it, in order; those that the model produced as handles of blobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
}

impl Output {
    /// What these parts of a reply say.
    pub fn of(parts: &[Part]) -> Self {
        Self {
            text: parts.iter().filter_map(Part::as_text).collect(),
            value: None,
            media: parts.iter().filter_map(Part::as_media).collect(),
        }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.media.is_empty()
    }
}

impl Ending {
    /// The status word.
    pub fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed { .. } => Status::Failed,
            Self::Cancelled { .. } => Status::Cancelled,
            Self::TurnLimit { .. } => Status::TurnLimit,
            Self::Expired => Status::Expired,
        }
    }

    /// The answer, if there is one.
    pub fn output(&self) -> Option<&Output> {
        match self {
            Self::Completed { output } => Some(output),
            Self::TurnLimit { output, .. } => output.as_ref(),
            Self::Failed { .. } | Self::Cancelled { .. } | Self::Expired => None,
        }
    }

    /// The failure, unless the run completed.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Completed { .. } => None,
            Self::Failed { error } => Some(error.clone()),
            Self::Cancelled { reason } => {
                let why = reason.as_deref().unwrap_or("no reason was given");
                Some(Failure::new(ErrorCode::Cancelled, format!("the run was cancelled: {why}")))
            }
            Self::TurnLimit { limit, .. } => {
                let name = match limit {
                    Limit::Iterations => "max_iterations",
                    Limit::Tokens => "max_tokens",
                    Limit::Cost => "max_cost_usd",
                };
                Some(Failure::new(ErrorCode::TurnLimit, format!("the run reached its limit `{name}`")))
            }
            Self::Expired => Some(Failure::new(ErrorCode::Expired, "what the run waited for did not come in time")),
        }
    }
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// There is something to do; a driver is at it or will be.
    Running,
    /// It waits for others.
    Pending,
    /// Ended with a valid answer.
    Completed,
    /// Ended without one.
    Failed,
    /// Stopped by somebody.
    Cancelled,
    /// Ended at a hard limit.
    TurnLimit,
    /// Ended by waiting too long.
    Expired,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 7] =
        [Self::Running, Self::Pending, Self::Completed, Self::Failed, Self::Cancelled, Self::TurnLimit, Self::Expired];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TurnLimit => "turn_limit",
            Self::Expired => "expired",
        }
    }

    /// The status of that name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether nothing can follow.
    pub fn is_ended(self) -> bool {
        match self {
            Self::Running | Self::Pending => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::TurnLimit | Self::Expired => true,
        }
    }
}
