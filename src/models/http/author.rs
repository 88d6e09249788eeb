//! Who writes the turns of a conversation. What a turn keeps for replay is for its author alone: reasoning that one account
//! may read must not go to another host, even where the model has the same name.

use crate::core::chat::{Message, ProviderState};

/// A model behind a wire on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Author {
    /// The name of the wire format.
    pub(super) wire: &'static str,
    /// The model.
    pub(super) model: String,
    /// The server, as `host` or `host:port`.
    pub(super) origin: String,
}

impl Author {
    /// Whether this author wrote the message, and it can be replayed.
    pub(super) fn wrote(&self, message: &Message) -> bool {
        message.provider_state.as_ref().is_some_and(|state| {
            (state.wire.as_str(), &state.model, state.origin.as_ref()) == (self.wire, &self.model, Some(&self.origin))
        })
    }

    /// The state of a turn that this author wrote, with the server's name on it.
    pub(super) fn sign(&self, state: ProviderState) -> ProviderState {
        ProviderState { origin: Some(self.origin.clone()), ..state }
    }
}
