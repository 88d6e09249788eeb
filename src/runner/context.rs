//! The default context: the system prompt as authored, the transcript as it is.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;

use crate::core::chat::Message;
use crate::core::error::Failure;
use crate::core::run::{Budget, Spec};
use crate::core::tool::Toolset;
use crate::ports::{Context, ContextBuilder};

/// Passes everything on unchanged, so that adapters can send what they rendered before.
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
