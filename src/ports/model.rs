//! A language model.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::Delta;
use crate::core::chat::{Message, Reply, Usage};
use crate::core::error::Failure;
use crate::core::run::Offer;
use crate::core::tool::{Tool, Toolset};
use crate::core::trace::SpanContext;

/// What a model is called, for spans and listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The API family: `openai`, `anthropic`, …
    pub system: String,
    /// Who serves it: `openai`, `ollama`, `azure`, …
    pub provider: String,
    /// The model that is asked for.
    pub model: String,
    /// The settings sent along (temperature and so on), without secrets.
    pub settings: Value,
}

/// One call.
#[derive(Clone, Debug)]
pub struct ModelRequest<'a> {
    /// Authored text only; may be empty.
    pub system: &'a str,
    /// The conversation, oldest first. Unchanged messages are the same allocation from turn to turn.
    pub messages: &'a [Arc<Message>],
    /// The tools; the same allocation until they change.
    pub tools: &'a Arc<Toolset>,
    /// Whether tools may be called.
    pub offer: Offer,
    /// JSON Schema of the final answer, as a hint.
    pub output_schema: Option<&'a Value>,
    /// The trace context of the call's span.
    pub trace: &'a SpanContext,
}

/// Takes fragments while a reply is being written.
pub type DeltaSink<'a> = &'a (dyn Fn(Delta) + Send + Sync);

/// An attempt that brought no reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFailure {
    /// Why.
    pub failure: Failure,
    /// What it used all the same, as far as the provider said before it failed.
    pub usage: Usage,
}

impl From<Failure> for ModelFailure {
    fn from(failure: Failure) -> Self {
        Self { failure, usage: Usage::default() }
    }
}

/// How a tool fits into what a provider takes. Our own copy of the tool stays as its server declared it, and arguments
/// are checked against that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// As it is.
    Whole,
    /// Less these details, each a sentence.
    Lossy(Vec<String>),
    /// Not at all, and it is left out: why.
    Refused(String),
}

/// A model that can be talked to.
pub trait Model: Send + Sync {
    /// What it is called.
    fn identity(&self) -> &ModelIdentity;

    /// How a tool would be declared to it.
    fn fit(&self, _tool: &Tool) -> Fit {
        Fit::Whole
    }

    /// Opens a conversation: a place where the adapter keeps what it rendered, so that a turn costs what is new in it.
    fn converse(&self) -> Box<dyn Conversation>;
}

/// The turns of one run with one model.
#[async_trait]
pub trait Conversation: Send + Sync {
    /// Asks for a reply: one attempt, no retries. Fragments go to `deltas` if the model streams; the reply is whole
    /// either way. Dropping the future abandons the request.
    async fn reply(&mut self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure>;
}
