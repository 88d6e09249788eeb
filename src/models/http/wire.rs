//! What differs between providers: one trait for the way there, one for the way back. Both are pure.

use std::fmt;

use serde_json::Value;

use super::tool_block::{Declaration, Names};
use super::{CallIds, ErrorBody, Fault, Members, ToolChoice};
use crate::core::chat::{Message, Reply, Usage};
use crate::core::error::{ErrorCode, Failure};
use crate::core::tool::Tool;
use crate::ports::{Delta, ModelRequest};

/// An answer may have this many bytes, unless a wire says otherwise.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// One provider's wire format, with what the settings say put into it.
pub(in crate::models) trait Wire: fmt::Debug + Send + Sync {
    /// Its name, as the configuration has it; marks turns that are kept for replay.
    fn name(&self) -> &'static str;

    /// Whether replies are asked for in fragments.
    fn streams(&self) -> bool;

    /// What is wrong with a request that this provider has no way to take: found before anything is sent.
    fn check(&self, _request: &ModelRequest<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Appends a message as what the provider reads. `before` is the message before it: a result may have to say more
    /// of its call than the id. An assistant message is replayed from its `provider_state` if that is of this wire and
    /// model.
    fn message(
        &self,
        message: &Message,
        before: Option<&Message>,
        members: &mut Members,
    ) -> Result<(), serde_json::Error>;

    /// Declares a tool.
    fn declare(&self, tool: &Tool) -> Declared;

    /// Puts what is to be declared within the limits that this server has for all tools of a request together.
    fn bound(&self, _declarations: &mut Vec<Declaration>) {}

    /// The whole body around what is rendered already.
    fn body(&self, request: &ModelRequest<'_>, rendered: &Rendered<'_>) -> Result<Vec<u8>, serde_json::Error>;

    /// The beginning of an answer.
    fn fold(&self) -> Box<dyn Fold>;

    /// The code of an error, where this provider has a way of its own to say it; else the status decides.
    fn classify(&self, _error: &ErrorBody) -> Option<ErrorCode> {
        None
    }

    /// How many bytes an answer may have.
    fn max_answer_bytes(&self) -> usize {
        MAX_ANSWER_BYTES
    }
}

/// What is rendered once and kept from turn to turn.
pub(in crate::models) struct Rendered<'a> {
    /// The members of the array of messages, separated by commas.
    pub(in crate::models) messages: &'a [u8],
    /// The declared tools as a JSON array; `None` if there are none.
    pub(in crate::models) tools: Option<&'a [u8]>,
    /// The names of the declared tools.
    pub(in crate::models) names: &'a Names,
}

impl Rendered<'_> {
    /// The choice as it can be sent with these tools: one that names a tool which is not declared leaves it to the model.
    pub(in crate::models) fn choice<'c>(&self, choice: &'c ToolChoice) -> &'c ToolChoice {
        self.names.sendable(choice)
    }
}

/// A tool as a provider reads it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::models) enum Declared {
    /// It can be declared.
    As {
        /// The declaration.
        json: Value,
        /// What of its schema had to go, each a sentence.
        lost: Vec<String>,
    },
    /// It cannot: why.
    Refused(String),
}

/// An answer as far as it has arrived, on its way to a reply. A whole answer obeys the same rules as a stream: calls
/// decide, not the finish reason; the last usage counts; an error anywhere wins.
pub(in crate::models) trait Fold: fmt::Debug + Send {
    /// Takes the data of one event of a stream.
    fn event(&mut self, data: &str, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault>;

    /// Takes a whole answer.
    fn whole(&mut self, body: &[u8]) -> Result<(), Fault>;

    /// Whether nothing more of interest can come.
    fn is_done(&self) -> bool;

    /// Whether the answer may count as whole, even if the stream ends here.
    fn is_finished(&self) -> bool;

    /// Whether anything was said or asked for yet.
    fn has_begun(&self) -> bool;

    /// What the answer used, as far as it is known by now.
    fn usage(&self) -> Usage;

    /// The reply. `known` are the ids that the conversation has already.
    fn into_reply(self: Box<Self>, known: &CallIds) -> Result<Reply, Fault>;
}
