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

/// An attempt at a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelAttempt {
    /// The model that is asked: the run's own or a fallback.
    pub model: ModelName,
    /// Its number in the turn, from 1.
    pub attempt: u32,
}
