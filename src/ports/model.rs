//! Language models.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use toolgate_core::chat::{Message, Price, Reply, Usage};
use toolgate_core::error::Failure;
use toolgate_core::lifecycle::Delta;
use toolgate_core::run::{ModelOptions, ToolAccess};
use toolgate_core::tool::{Tool, Toolset};
use toolgate_core::trace::SpanContext;

/// The identity of a model, for spans and listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The API family: `openai`, `anthropic`, …
    pub system: String,
    /// The provider: `openai`, `ollama`, `azure`, …
    pub provider: String,
    /// The requested model.
    pub model: String,
    /// The settings of the request (temperature and so on), without secrets.
    pub settings: Value,
}

/// A model call.
#[derive(Clone, Debug)]
pub struct ModelRequest<'a> {
    /// Authored text only; may be empty.
    pub system: &'a str,
    /// The conversation, oldest first. Unchanged messages are the same allocation from turn to turn.
    pub messages: &'a [Arc<Message>],
    /// The tools; the same allocation until they change.
    pub tools: &'a Arc<Toolset>,
    /// Whether tools may be called.
    pub tool_access: ToolAccess,
    /// JSON Schema of the final answer, as a hint.
    pub output_schema: Option<&'a Value>,
    /// The trace context of the call's span.
    pub trace: &'a SpanContext,
}

/// Receives fragments while a reply is being written.
pub type DeltaSink<'a> = &'a (dyn Fn(Delta) + Send + Sync);

/// A failed attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFailure {
    pub failure: Failure,
    /// Its usage, as far as the provider reported it before the failure.
    pub usage: Usage,
}

impl From<Failure> for ModelFailure {
    fn from(failure: Failure) -> Self {
        Self { failure, usage: Usage::default() }
    }
}

/// The compatibility of a tool with a provider. Our own copy of the tool stays as its server declared it, and arguments
/// are checked against that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolFit {
    Whole,
    /// Without these details, each a sentence.
    Lossy(Vec<String>),
    /// Not compatible, with the reason; the tool is omitted.
    Refused(String),
}

/// A language model.
pub trait Model: Send + Sync {
    fn identity(&self) -> &ModelIdentity;

    /// How well a tool can be declared to it.
    fn fit(&self, _tool: &Tool) -> ToolFit {
        ToolFit::Whole
    }

    /// The most tools of a request, if its provider rejects a request with more.
    fn most_tools(&self) -> Option<usize> {
        None
    }

    /// Its price, if it is known.
    fn price(&self) -> Option<&Price> {
        None
    }

    /// The same model with the options of a run in place of its own settings. Sends no request.
    ///
    /// # Errors
    ///
    /// Why it does not support one of the options. A model of an embedder that does not implement this supports none.
    fn with_options(&self, _options: &ModelOptions) -> Result<Arc<dyn Model>, String> {
        Err(format!("the model `{}` takes no options of a run", self.identity().model))
    }

    /// Opens a conversation: the adapter's cache of rendered content, so that a turn costs only its new content.
    fn converse(&self) -> Box<dyn Conversation>;
}

/// The turns of one run with one model.
#[async_trait]
pub trait Conversation: Send + Sync {
    /// Requests a reply: one attempt, no retries. Fragments go to `deltas` if the model streams; the reply is complete
    /// either way. Dropping the future abandons the request.
    async fn reply(&mut self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure>;
}
