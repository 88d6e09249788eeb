//! Streamed fragments of replies and calls.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, ModelName};
use crate::tool::Progress;

/// A fragment of a running reply or call: shown live, never journaled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Delta {
    /// Text of the answer.
    #[serde(rename = "llm.text.delta")]
    Text { text: String },
    /// Visible reasoning.
    #[serde(rename = "llm.reasoning.delta")]
    Reasoning { text: String },
    #[serde(rename = "tool.mcp.progress")]
    Progress {
        #[serde(rename = "call_id")]
        call: CallId,
        /// The server's report.
        #[serde(flatten)]
        progress: Progress,
    },
}

/// The position of a fragment in the text, or in the visible reasoning, of an attempt at a model. The fragments of each
/// of the two follow each other without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentPosition {
    /// The journal position of the attempt's `llm.call.started`.
    pub call: u64,
    /// The number of characters (Unicode scalar values) before the fragment.
    pub index: u64,
}

impl Delta {
    /// The length of a fragment of a reply, in characters; 0 for progress.
    pub fn chars(&self) -> u64 {
        match self {
            Self::Text { text } | Self::Reasoning { text } => text.chars().count() as u64,
            Self::Progress { .. } => 0,
        }
    }
}

/// The attempt that streams a fragment, and the place of the fragment in its text or reasoning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FragmentSource {
    #[serde(flatten)]
    pub attempt: ModelAttempt,
    /// The number of characters before the fragment. 0 begins the text or the reasoning again.
    pub index: u64,
    /// The `index` of the next fragment of the same kind.
    pub next_index: u64,
}

/// An attempt at a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelAttempt {
    /// The model that is asked: the run's own or a fallback.
    pub model: ModelName,
    /// Its number in the turn, from 1.
    pub attempt: u32,
}
