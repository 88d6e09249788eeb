//! How much of what was said a span repeats.

use super::Mask;
use crate::core::error::Failure;

/// What spans may carry. By default everything that OpenInference has a name for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanContent {
    /// Redact what goes in: prompts, tool definitions, arguments.
    pub hide_inputs: bool,
    /// Redact what comes out: answers, results, and error texts that quote them.
    pub hide_outputs: bool,
    /// Of a conversation show what a model said last and what came after it, and not how it came to that. The size of a
    /// trace then grows with its turns and not with their square.
    pub last_turn_only: bool,
    /// Repeat messages, arguments and results under their GenAI names too.
    pub gen_ai_content: bool,
    /// What is hidden besides.
    pub mask: Mask,
}

impl SpanContent {
    /// What is told of a failure: its code alone where anything is hidden, for providers quote what they were sent and what
    /// they were about to say.
    pub(super) fn sentence(self, failure: &Failure) -> &str {
        match self.hide_inputs || self.hide_outputs {
            true => failure.code.as_str(),
            false => &failure.message,
        }
    }

    /// Whether what went in is repeated under its GenAI names.
    pub(super) fn gen_ai_inputs(self) -> bool {
        self.gen_ai_content && !self.hide_inputs
    }

    /// Whether what came out is repeated under its GenAI names.
    pub(super) fn gen_ai_outputs(self) -> bool {
        self.gen_ai_content && !self.hide_outputs
    }
}
