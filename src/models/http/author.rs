//! Turn author: the model that wrote a turn. The replay state of a turn is for its author only: reasoning that one
//! account may read must not go to another host, even if the model has the same name.

use toolgate_core::chat::{Message, ProviderState};

/// A model behind a wire on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Author {
    /// The name of the wire format.
    pub(super) wire: &'static str,
    pub(super) model: String,
    /// The server, as `host` or `host:port`.
    pub(super) origin: String,
}

impl Author {
    /// Whether this author wrote the message and can replay it.
    pub(super) fn wrote(&self, message: &Message) -> bool {
        // Another model reads the neutral form: signatures have no meaning for it (decision 0005).
        message.provider_state.as_ref().is_some_and(|state| {
            (state.wire.as_str(), &state.model, state.origin.as_ref()) == (self.wire, &self.model, Some(&self.origin))
        })
    }

    /// The state of a turn of this author, with the server's name added.
    pub(super) fn sign(&self, state: ProviderState) -> ProviderState {
        ProviderState { origin: Some(self.origin.clone()), ..state }
    }
}
