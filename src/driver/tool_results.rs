//! The conversation as a model reads it, with the bytes of stored media. A model cannot read our store, so a tool's
//! image has to be sent in every later turn, as in the provider's own form.
//!
//! Each message is processed once: a message that was sent before is the same allocation in the next turn, and adapters
//! send their cached rendering. Only blobs of the run are fetched: those that its own replies and results name, and those of
//! its files. A handle in any other text is only text. Media beyond [`Media::MAX_CONVERSATION_BYTES`] become notes.

use std::sync::Arc;

use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::chat::{Media, Message, Part};
use toolgate_core::run::Run;
use toolgate_ports::{BlobStore, StoreError};

use super::Ports;
use super::journal::STORE_WAITS;

/// The messages so far.
#[derive(Default)]
pub(super) struct RenderedMessages {
    rendered: Vec<RenderedMessage>,
    shown: Vec<Arc<Message>>,
}

/// A processed message, and the number of bytes that were fetched for it.
struct RenderedMessage {
    message: Arc<Message>,
    bytes: u64,
}

impl RenderedMessages {
    /// The messages for the model.
    pub(super) async fn update<'a>(
        &'a mut self,
        ports: &Ports,
        run: &Run,
        messages: &'a [Arc<Message>],
    ) -> Result<&'a [Arc<Message>], StoreError> {
        let Some(blobs) = ports.blobs.as_deref().filter(|_| !run.blobs().is_empty()) else { return Ok(messages) };
        let same = |(seen, message): &(&RenderedMessage, &Arc<Message>)| Arc::ptr_eq(&seen.message, message);
        let unchanged = self.rendered.iter().zip(messages).take_while(same).count();
        self.rendered.truncate(unchanged);
        self.shown.truncate(unchanged);
        let spent: u64 = self.rendered.iter().map(|seen| seen.bytes).sum();
        let mut fetching =
            MediaFetcher { ports, blobs, run, left: Media::MAX_CONVERSATION_BYTES.saturating_sub(spent) };
        for message in messages.iter().skip(unchanged) {
            let before = fetching.left;
            let shown = fetching.message(message).await?;
            self.rendered.push(RenderedMessage { message: message.clone(), bytes: before - fetching.left });
            self.shown.push(shown);
        }
        Ok(&self.shown)
    }
}

struct MediaFetcher<'a> {
    ports: &'a Ports,
    blobs: &'a dyn BlobStore,
    run: &'a Run,
    left: u64,
}

impl MediaFetcher<'_> {
    async fn message(&mut self, message: &Arc<Message>) -> Result<Arc<Message>, StoreError> {
        if message.blobs().all(|handle| !self.run.blobs().contains(&handle)) {
            return Ok(message.clone());
        }
        let mut filled = (**message).clone();
        for part in &mut filled.content {
            let inside = if let Part::ToolResult { content, .. } = part { content } else { std::slice::from_mut(part) };
            for part in inside {
                self.part(part).await?;
            }
        }
        Ok(Arc::new(filled))
    }

    async fn part(&mut self, part: &mut Part) -> Result<(), StoreError> {
        let Some(handle) = part.blobs().first().copied().filter(|handle| self.run.blobs().contains(handle)) else {
            return Ok(());
        };
        if is_shown_to_models(part)
            && let Some(blob) = self.fetch(&handle).await?
        {
            part.fill(blob.bytes());
        }
        Ok(())
    }

    /// The blob, unless it is gone or no room is left.
    async fn fetch(&mut self, handle: &BlobHandle) -> Result<Option<Blob>, StoreError> {
        let Some(info) = self.with_retries(|| self.blobs.describe(handle)).await? else { return Ok(None) };
        let Some(left) = self.left.checked_sub(info.size) else { return Ok(None) };
        let found = self.with_retries(|| self.blobs.get(handle)).await?;
        if found.is_some() {
            self.left = left;
        }
        Ok(found)
    }

    /// Retries an unavailable store: without the image the model's answer would be different.
    async fn with_retries<T, F: Future<Output = Result<T, StoreError>>>(&self, ask: impl Fn() -> F) -> F::Output {
        for wait in STORE_WAITS {
            match ask().await {
                Err(StoreError::Unavailable(_) | StoreError::Full(_)) => self.ports.clock.sleep(wait).await,
                done => return done,
            }
        }
        ask().await
    }
}

/// Whether any provider reads bytes of this kind.
fn is_shown_to_models(part: &Part) -> bool {
    match part {
        Part::Image(_) | Part::Audio(_) => true,
        Part::Resource { media_type, .. } => {
            let media_type = media_type.as_deref().unwrap_or(Media::UNKNOWN_TYPE).to_ascii_lowercase();
            ["image/", "audio/", "application/pdf"].iter().any(|shown| media_type.starts_with(shown))
        }
        Part::Text { .. } | Part::Reasoning { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => false,
    }
}
