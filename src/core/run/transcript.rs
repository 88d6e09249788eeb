//! Transcript: strictly alternating messages.

use std::sync::Arc;

use crate::chat::{Message, ProviderState};

/// Appends a message. Two consecutive messages of one role are joined, so that roles alternate strictly. A message
/// without text adds nothing, because providers refuse it.
pub(super) fn say(messages: &mut Vec<Arc<Message>>, message: impl Into<Arc<Message>>) {
    let message: Arc<Message> = message.into();
    let is_blank = message.content.iter().all(|part| part.as_text() == Some(""));
    if is_blank && message.provider_state.is_none() {
        return;
    }
    match messages.last_mut() {
        Some(last) if last.role == message.role => {
            let (last, message) = (Arc::make_mut(last), Arc::unwrap_or_clone(message));
            last.content.extend(message.content);
            // A turn that the provider paused continues in the next one, and is replayed as the original two.
            last.provider_state = ProviderState::join(last.provider_state.take(), message.provider_state);
        }
        Some(_) | None => messages.push(message),
    }
}
