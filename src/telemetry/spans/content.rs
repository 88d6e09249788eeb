//! Span content: how much of the conversation spans include.

use toolgate_core::error::Failure;

use super::Mask;

/// The content of spans. By default everything that OpenInference has a name for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContent {
    /// Redact inputs: prompts, tool definitions, arguments.
    pub hide_inputs: bool,
    /// Redact outputs: answers, results, and error texts that quote them.
    pub hide_outputs: bool,
    /// Show only the last model message of a conversation and the messages after it. The size of a trace then grows
    /// linearly with its turns, not quadratically.
    pub last_turn_only: bool,
    /// Repeat messages, arguments and results under their GenAI names too.
    pub gen_ai_content: bool,
    /// Further content to hide.
    pub mask: Mask,
    /// The longest text of a value, in bytes. A longer one is cut, or replaced within JSON.
    pub value_bytes: usize,
}

impl Default for SpanContent {
    fn default() -> Self {
        Self {
            hide_inputs: false,
            hide_outputs: false,
            last_turn_only: false,
            gen_ai_content: false,
            mask: Mask::default(),
            value_bytes: 64 * 1024,
        }
    }
}

impl SpanContent {
    /// The text of a failure. If any content is hidden it is only the error code, because providers quote inputs and
    /// outputs in their messages.
    pub(super) fn sentence(self, failure: &Failure) -> &str {
        match self.hide_inputs || self.hide_outputs {
            true => failure.code.as_str(),
            false => &failure.message,
        }
    }

    /// Whether inputs are repeated under their GenAI names.
    pub(super) fn gen_ai_inputs(self) -> bool {
        self.gen_ai_content && !self.hide_inputs
    }

    /// Whether outputs are repeated under their GenAI names.
    pub(super) fn gen_ai_outputs(self) -> bool {
        self.gen_ai_content && !self.hide_outputs
    }
}
