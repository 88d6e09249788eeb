//! Context builder: the content that the model reads in one turn.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_core::chat::Message;
use toolgate_core::error::Failure;
use toolgate_core::run::{Budget, Spec};
use toolgate_core::tool::Toolset;

/// The system prompt and the messages of one model call.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// Authored text only.
    pub system: Cow<'a, str>,
    /// The conversation. Borrow it when it is unchanged: adapters then send what they rendered before.
    pub messages: Cow<'a, [Arc<Message>]>,
}

impl Context<'_> {
    /// The same context without borrows. Unchanged messages stay the same allocations.
    pub fn into_owned(self) -> Context<'static> {
        Context { system: Cow::Owned(self.system.into_owned()), messages: Cow::Owned(self.messages.into_owned()) }
    }
}

/// Builds the context of each turn. The default passes system prompt and transcript unchanged.
#[async_trait]
pub trait ContextBuilder: Send + Sync {
    /// Builds the context, before the model is called. A failure ends the run.
    async fn build<'a>(
        &self,
        spec: &'a Spec,
        transcript: &'a [Arc<Message>],
        tools: &Toolset,
        budget: &Budget,
    ) -> Result<Context<'a>, Failure>;
}
