//! Provider wire format: one trait for requests, one for answers. Both are pure.

use std::fmt;

use toolgate_core::chat::{Message, Reply, Usage};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::lifecycle::Delta;
use toolgate_core::tool::Tool;
use toolgate_ports::ModelRequest;

use super::declaration::{Declaration, Declared, Names};
use super::{CallIds, ErrorBody, Fault, Members, ToolChoice};

/// The most bytes of an answer, unless a wire sets its own limit.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// One provider's wire format, with its settings.
pub(crate) trait ProviderProtocol: fmt::Debug + Send + Sync {
    /// Its name in the configuration; marks turns that are kept for replay.
    fn name(&self) -> &'static str;

    /// Whether replies are requested in fragments.
    fn streams(&self) -> bool;

    /// Rejects a request that this provider cannot serve, before it is sent.
    fn check(&self, _request: &ModelRequest<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Appends a message in the provider's form. `before` is the previous message: a result may need more of its call
    /// than the id. An assistant message is replayed from its `provider_state` if that is of this wire and model.
    fn message(
        &self,
        message: &Message,
        before: Option<&Message>,
        members: &mut Members,
    ) -> Result<(), serde_json::Error>;

    /// Declares a tool.
    fn declare(&self, tool: &Tool) -> Declared;

    /// The most tools of a request, if this server rejects a request with more.
    fn most_tools(&self) -> Option<usize> {
        None
    }

    /// Applies this server's other limits on all tools of a request together.
    fn bound(&self, _declarations: &mut [Declaration]) {}

    /// The complete body around the rendered parts.
    fn body(&self, request: &ModelRequest<'_>, rendered: &RenderedParts<'_>) -> Result<Vec<u8>, serde_json::Error>;

    /// The start of an answer.
    fn fold(&self) -> Box<dyn Fold>;

    /// The code of an error that this provider reports in its own way; else the status decides.
    fn classify(&self, _error: &ErrorBody) -> Option<ErrorCode> {
        None
    }

    /// The most bytes of an answer.
    fn max_answer_bytes(&self) -> usize {
        MAX_ANSWER_BYTES
    }
}

/// The parts that are rendered once and kept from turn to turn.
pub(crate) struct RenderedParts<'a> {
    /// The members of the array of messages, separated by commas.
    pub(crate) messages: &'a [u8],
    /// The declared tools as a JSON array; `None` if there are no tools.
    pub(crate) tools: Option<&'a [u8]>,
    /// The names of the declared tools.
    pub(crate) names: &'a Names,
}

impl RenderedParts<'_> {
    /// The tool choice for these tools: one that names an undeclared tool becomes `auto`.
    pub(crate) fn choice<'c>(&self, choice: &'c ToolChoice) -> &'c ToolChoice {
        self.names.sendable(choice)
    }
}

/// An answer on its way to a reply. A complete answer follows the same rules as a stream: calls decide, not the finish
/// reason; the last usage counts; any error wins.
pub(crate) trait Fold: fmt::Debug + Send {
    /// Adds the data of one event of a stream.
    fn event(&mut self, data: &str, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault>;

    /// Adds a complete answer.
    fn whole(&mut self, body: &[u8]) -> Result<(), Fault>;

    /// Whether no more relevant data can come.
    fn is_done(&self) -> bool;

    /// Whether the answer may count as complete, even if the stream ends here.
    fn is_finished(&self) -> bool;

    /// Whether the answer has any content or call yet.
    fn has_begun(&self) -> bool;

    /// The usage, as far as it is known.
    fn usage(&self) -> Usage;

    /// The reply. `known` holds the call ids of the conversation.
    fn into_reply(self: Box<Self>, known: &CallIds) -> Result<Reply, Fault>;
}
