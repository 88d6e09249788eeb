//! Which stops mean that an answer ended before its model was done. The last call of such an answer may be half of one:
//! arguments that had not begun look like none, and none is what some tools run on.

use crate::core::chat::Stop;

/// Whether an answer with this stop was broken off from outside.
pub(super) fn is_cut(stop: Stop) -> bool {
    match stop {
        Stop::MaxTokens | Stop::ContextWindow | Stop::Refusal | Stop::ContentFilter => true,
        Stop::End | Stop::ToolCalls | Stop::Pause => false,
    }
}
