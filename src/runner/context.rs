//! Default context: the system prompt and the transcript, unchanged.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;

use crate::core::chat::Message;
use crate::core::error::Failure;
use crate::core::run::{Budget, Spec};
use crate::core::tool::Toolset;
use crate::ports::{Context, ContextBuilder};

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
