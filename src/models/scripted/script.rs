//! The conversation file: what a scripted model says, turn by turn. These are plain serde types, so YAML and JSON read
//! into the same thing; unknown fields are refused, because a mistyped one would silently change a test.

use serde::Deserialize;

use crate::core::chat::{Media, Stop, Usage};
use crate::core::error::{ErrorCode, Failure};
use crate::core::tool::Arguments;

/// A whole conversation, from the model's side.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The replies, in order. Turn `n` answers a transcript that holds `n` assistant messages.
    pub turns: Vec<Turn>,
}

/// One reply, and how it comes about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// What must have been said to the model, or the reply is a failure that names the turn.
    pub expect: Option<Expectation>,
    /// Visible reasoning; comes first in the reply.
    pub reasoning: Option<String>,
    /// The text; comes before the calls. `{{last_result}}` stands for the text of the latest tool result.
    pub say: Option<String>,
    /// Media the model produces, after the text: images and audio by their type, anything else as a resource.
    pub media: Vec<Media>,
    /// The tools asked for, in this order.
    pub calls: Vec<ScriptedCall>,
    /// The whole reply when no tools are on offer. Without it the turn is played as written, tools or not.
    pub final_text: Option<String>,
    /// Why the model stopped; by default what the content says.
    pub stop: Option<Stop>,
    /// What the reply cost; by default unknown.
    pub usage: Usage,
    /// Hands the text out in fragments before the reply is complete.
    pub stream: Option<Streaming>,
    /// Milliseconds before anything happens.
    pub latency_ms: u64,
    /// Fails instead of replying.
    pub fail: Option<ScriptedFailure>,
    /// Never replies, so that something else has to end the wait.
    pub hang: bool,
}

/// A call the model makes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Its id; by default `call_<turn>_<position>`, both from 1.
    #[serde(default)]
    pub id: Option<String>,
    /// The tool's name, as the model writes it.
    pub name: String,
    /// An object, or a string that stands for arguments no JSON parser accepts. Default: `{}`.
    #[serde(default = "no_arguments")]
    pub arguments: Arguments,
}

/// What the last user message has to hold, tool results included.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Text that must occur.
    pub contains: String,
}

/// How text is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// Into how many pieces the text is split; never more than it has characters.
    pub fragments: usize,
    /// Milliseconds before each piece.
    #[serde(default)]
    pub delay_ms: u64,
}

/// A failure on demand.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    /// The code.
    pub code: ErrorCode,
    /// The message; by default one that names the turn.
    #[serde(default)]
    pub message: Option<String>,
    /// Whether a retry may help; by default what the code says.
    #[serde(default)]
    pub retryable: Option<bool>,
    /// The delay asked for, in milliseconds.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// How many attempts of a conversation fail before the turn is played; absent means every one.
    #[serde(default)]
    pub times: Option<u32>,
}

/// A conversation file that cannot be read.
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
