//! Default context: the system prompt and the transcript, unchanged.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_core::chat::Message;
use toolgate_core::error::Failure;
use toolgate_core::run::{Budget, Spec};
use toolgate_core::tool::Toolset;
use toolgate_ports::{Context, ContextBuilder};

/// Passes everything through unchanged, so that adapters can reuse earlier requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transcript;

#[async_trait]
impl ContextBuilder for Transcript {
    async fn build<'a>(
        &self,
        spec: &'a Spec,
        transcript: &'a [Arc<Message>],
        _tools: &Toolset,
        _budget: &Budget,
    ) -> Result<Context<'a>, Failure> {
        Ok(Context { system: Cow::Borrowed(&spec.system), messages: Cow::Borrowed(transcript) })
    }
}
