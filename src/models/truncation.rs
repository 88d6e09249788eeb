//! Truncated answers: the stop reasons for which an answer ended before its model was done. The last call of such an
//! answer may be incomplete: missing arguments look like empty ones, and some tools run on empty arguments.

use toolgate_core::chat::Stop;

/// Whether an answer with this stop reason was cut off.
pub(super) fn is_cut(stop: Stop) -> bool {
    match stop {
        Stop::MaxTokens | Stop::ContextWindow | Stop::Refusal | Stop::ContentFilter => true,
        Stop::End | Stop::ToolCalls | Stop::Pause => false,
    }
}
