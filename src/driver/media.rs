//! Media that a model produced go to the blob store before the reply is journaled; the journal keeps their handles.

use super::journal::STORE_WAITS;
use super::{Driver, Ports};
use crate::core::blob::BlobHandle;
use crate::core::chat::{Media, Part, Reply};
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::RunId;
use crate::ports::{Blob, BlobError, BlobStore, ModelFailure, StoreError};

impl Driver<'_> {
    /// The reply with handles in the place of inline media, whose bytes are durable by then. Media that nobody could keep
    /// make it a failed attempt.
    pub(super) async fn keep_media(
        &self,
        run: &RunId,
        mut reply: Reply,
    ) -> Result<Result<Reply, ModelFailure>, StoreError> {
        // The handles in a reply are ours, or the run would come to own what it only named.
        reply.content.iter_mut().for_each(Part::disown);
        let Some(blobs) = &self.ports.blobs else { return Ok(Ok(reply)) };
        let mut is_moved = false;
        for part in &mut reply.content {
            let Some((media_type, data)) = part.take_data() else { continue };
            match self.keep(blobs.as_ref(), run, media_type, &data).await {
                Ok(handle) => part.refer(handle),
                Err(Unkept::Store(error)) => return Err(error),
                Err(Unkept::Unusable(failure)) => return Ok(Err(ModelFailure { failure, usage: reply.usage })),
            }
            is_moved = true;
        }
        if is_moved {
            // The provider's own form holds the same bytes inline. The turn is replayed in the neutral form instead.
            reply.provider_state = None;
        }
        Ok(Ok(reply))
    }

    async fn keep(
        &self,
        blobs: &dyn BlobStore,
        run: &RunId,
        media_type: String,
        data: &str,
    ) -> Result<BlobHandle, Unkept> {
        let unusable = |why: &str| {
            let message = format!("the answer holds {media_type} that cannot be kept: {why}");
            Failure::new(ErrorCode::ProviderInvalidResponse, message)
        };
        let bytes = Media::decode(data).ok_or_else(|| Unkept::Unusable(unusable("it is not base64")))?;
        let kept = self.ports.put(blobs, run, Blob { media_type: media_type.clone(), bytes }).await;
        kept.map_err(|error| match error {
            BlobError::Store(error) => Unkept::Store(error),
            // Asking again would be paid for again, and come to the same.
            BlobError::TooLarge { .. } => Unkept::Unusable(unusable(&error.to_string()).retryable(false)),
        })
    }
}

impl Ports {
    /// Puts a blob. What a model or a tool made would be lost with this process, so a store that cannot be used just now
    /// is given time.
    pub(super) async fn put(&self, blobs: &dyn BlobStore, run: &RunId, blob: Blob) -> Result<BlobHandle, BlobError> {
        for wait in STORE_WAITS {
            match blobs.put(run, blob.clone()).await {
                Err(BlobError::Store(StoreError::Unavailable(_))) => self.clock.sleep(wait).await,
                done => return done,
            }
        }
        blobs.put(run, blob).await
    }
}

/// Why media were not kept.
enum Unkept {
    /// The store is at fault; the same bytes may be kept later.
    Store(StoreError),
    /// The media are.
    Unusable(Failure),
}
