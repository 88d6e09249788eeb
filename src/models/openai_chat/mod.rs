//! Models behind the OpenAI Chat Completions API: OpenAI itself and every server that speaks the same format.
//!
//! The translation is pure and apart from the network: `request` turns a conversation into bytes, [`Answer`] turns
//! bytes into a reply, and only `conversation` sends and waits. So every recorded answer of a provider is a test
//! without a network, cut into whatever pieces. One call is one attempt: nothing here retries.

mod answer;
mod call_ids;
mod calls;
mod conversation;
mod deadlines;
mod endpoint;
mod errors;
mod fold;
mod message;
mod request;
mod retry_hints;
mod secrets;
mod settings;
mod sse;
mod tool_block;
mod transcript;
mod usage;
mod wire;

use std::sync::Arc;

pub use answer::{Answer, Head, Progress};
pub use call_ids::CallIds;
pub use settings::{Settings, SettingsError, Timeouts};

use crate::ports::{Conversation, Model, ModelIdentity};
use conversation::ChatConversation;
use endpoint::Endpoint;
use request::Opening;

/// A model on a server that speaks Chat Completions.
#[derive(Clone, Debug)]
pub struct OpenAiChat {
    identity: Arc<ModelIdentity>,
    endpoint: Arc<Endpoint>,
    opening: Arc<Opening>,
}

impl OpenAiChat {
    /// Checks the settings and prepares the connection pool; sends nothing.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let endpoint = Endpoint::new(&settings)?;
        let opening = Opening::new(&settings, endpoint.provider())?;
        let identity = ModelIdentity {
            system: "openai".into(),
            provider: endpoint.provider().to_owned(),
            model: settings.model.clone(),
            settings: settings.shown(),
        };
        Ok(Self { identity: Arc::new(identity), endpoint: Arc::new(endpoint), opening: Arc::new(opening) })
    }
}

impl Model for OpenAiChat {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(ChatConversation::new(Arc::clone(&self.endpoint), Arc::clone(&self.opening)))
    }
}
