//! Conversation file of a scripted model, turn by turn. Its plain serde types make YAML and JSON equivalent. Unknown
//! fields are rejected, because a typo would silently change a test.

use serde::Deserialize;
use toolgate_core::chat::{Media, Stop, Usage};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::tool::Arguments;

/// A conversation, from the model's side.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The replies, in order. Turn `n` answers a transcript with `n` assistant messages.
    pub turns: Vec<ScriptedTurn>,
    /// The summary of a compaction. Without it, a compaction fails.
    #[serde(default)]
    pub summary: Option<ScriptedTurn>,
}

/// One reply, with its timing and failures.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedTurn {
    /// The expected content of the last user message; without it the reply is a failure that names the turn.
    pub expect: Option<Expectation>,
    /// Visible reasoning; first in the reply.
    pub reasoning: Option<String>,
    /// The text, before the calls. `{{last_result}}` is replaced by the text of the latest tool result.
    pub say: Option<String>,
    /// Media of the model, after the text: images and audio by type, any other as a resource.
    pub media: Vec<Media>,
    /// The tool calls, in this order.
    pub calls: Vec<ScriptedCall>,
    /// The whole reply when no tools are available. Without it the turn is played unchanged, with or without tools.
    pub final_text: Option<String>,
    /// The stop reason; by default it follows from the content.
    pub stop: Option<Stop>,
    /// The usage of the reply; by default unknown.
    pub usage: Usage,
    /// Streams the text in fragments before the reply is complete.
    pub stream: Option<Streaming>,
    /// Milliseconds before the reply starts.
    pub latency_ms: u64,
    /// Fails instead of replying.
    pub fail: Option<ScriptedFailure>,
    /// Never completes its reply, so that a deadline or a cancellation must end the wait. What `stream` says is streamed
    /// before.
    pub hang: bool,
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Its id; by default `call_<turn>_<position>`, both from 1.
    #[serde(default)]
    pub id: Option<String>,
    /// The tool's name, as the model writes it.
    pub name: String,
    /// An object, or a string for arguments that are not valid JSON. Default: `{}`.
    #[serde(default = "no_arguments")]
    pub arguments: Arguments,
}

/// The expected content of the last user message, including tool results.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Text that must occur.
    pub contains: String,
}

/// How the text is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// The number of pieces; never more than the characters of the text.
    pub fragments: usize,
    /// Milliseconds before each piece.
    #[serde(default)]
    pub delay_ms: u64,
}

/// A scripted failure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    pub code: ErrorCode,
    /// The message; by default one that names the turn.
    #[serde(default)]
    pub message: Option<String>,
    /// Whether a retry may help; by default the code decides.
    #[serde(default)]
    pub retryable: Option<bool>,
    /// The requested delay, in milliseconds.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// The number of attempts of a conversation that fail before the turn is played; without it, all fail.
    #[serde(default)]
    pub times: Option<u32>,
}

/// An invalid conversation file.
#[derive(Debug, thiserror::Error)]
#[error("the script is not valid: {0}")]
pub struct ScriptError(#[from] serde_json::Error);

impl Script {
    /// Reads a script from JSON text.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        Ok(serde_json::from_str(text)?)
    }
}

impl ScriptedFailure {
    /// The failure of turn `number`, if this attempt (from 1) still fails.
    pub(super) fn on_attempt(&self, attempt: u32, number: usize) -> Option<Failure> {
        if self.times.is_some_and(|times| attempt > times) {
            return None;
        }
        let message = self.message.clone().unwrap_or_else(|| format!("turn {number} of the script fails on demand"));
        let failure = Failure::new(self.code, message).after_ms(self.retry_after_ms);
        Some(match self.retryable {
            Some(retryable) => failure.retryable(retryable),
            None => failure,
        })
    }
}

fn no_arguments() -> Arguments {
    Arguments::parse("")
}
