//! A model that records the messages that it reads.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use toolgate::core::chat::{Message, Reply, Role};
use toolgate::ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};

/// The messages of each request.
pub(crate) type SentMessages = Arc<Mutex<Vec<Vec<Arc<Message>>>>>;

/// A model with these replies, one a turn.
pub(crate) struct RecordingModel {
    identity: ModelIdentity,
    turns: Turns,
}

impl RecordingModel {
    /// The model, and the messages that it will have read.
    pub(crate) fn with(replies: Vec<Reply>) -> (Self, SentMessages) {
        let sent = SentMessages::default();
        let name = || "recording".to_owned();
        let identity = ModelIdentity { system: name(), provider: name(), model: name(), settings: Value::Null };
        (Self { identity, turns: Turns { replies, sent: sent.clone() } }, sent)
    }
}

impl Model for RecordingModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(self.turns.clone())
    }
}

#[derive(Clone)]
struct Turns {
    replies: Vec<Reply>,
    sent: SentMessages,
}

#[async_trait]
impl Conversation for Turns {
    async fn reply(&mut self, request: &ModelRequest<'_>, _deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        self.sent.lock().unwrap().push(request.messages.to_vec());
        let turn = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        Ok(self.replies[turn].clone())
    }
}
