//! Media of a model's reply: stored in the blob store before the reply is journaled; the journal has their handles.

use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::chat::{Media, Part, Reply};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::RunId;
use toolgate_ports::{BlobError, BlobStore, ModelFailure, StoreError};

use super::journal::STORE_WAITS;
use super::{Driver, Ports};

impl Driver<'_> {
    /// The reply with handles in place of inline media, whose bytes are durable. If media cannot be stored, the attempt
    /// fails.
    pub(super) async fn keep_media(
        &self,
        run: &RunId,
        mut reply: Reply,
    ) -> Result<Result<Reply, ModelFailure>, StoreError> {
        // Only toolgate may create handles in a reply; otherwise the run would own blobs that it only mentioned.
        reply.content.iter_mut().for_each(Part::invalidate_handle);
        let Some(blobs) = &self.ports.blobs else { return Ok(Ok(reply)) };
        let mut is_moved = false;
        for part in &mut reply.content {
            let Some((media_type, data)) = part.take_data() else { continue };
            match self.keep(blobs.as_ref(), run, media_type, &data).await {
                Ok(handle) => part.refer(handle),
                Err(MediaStoreError::Store(error)) => return Err(error),
                Err(MediaStoreError::Unusable(failure)) => {
                    return Ok(Err(ModelFailure { failure, usage: reply.usage }));
                }
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
    ) -> Result<BlobHandle, MediaStoreError> {
        let unusable = |why: &str| {
            let message = format!("the answer holds {media_type} that cannot be kept: {why}");
            Failure::new(ErrorCode::ProviderInvalidResponse, message)
        };
        let bytes = Media::decode(data).ok_or_else(|| MediaStoreError::Unusable(unusable("it is not base64")))?;
        let stored = self.ports.put(blobs, run, Blob::new(media_type.as_str(), bytes)).await;
        stored.map_err(|error| match error {
            BlobError::Store(error) => MediaStoreError::Store(error),
            // A retry would cost again and fail again.
            BlobError::TooLarge { .. } => MediaStoreError::Unusable(unusable(&error.to_string()).retryable(false)),
        })
    }
}

impl Ports {
    /// Stores a blob. Output of a model or a tool would be lost with this process, so an unavailable store is retried.
    pub(super) async fn put(&self, blobs: &dyn BlobStore, run: &RunId, blob: Blob) -> Result<BlobHandle, BlobError> {
        for wait in STORE_WAITS {
            match blobs.put(run, blob.clone()).await {
                Err(BlobError::Store(StoreError::Unavailable(_) | StoreError::Full(_))) => self.clock.sleep(wait).await,
                done => return done,
            }
        }
        blobs.put(run, blob).await
    }
}

/// The reason why media were not stored.
enum MediaStoreError {
    /// The store failed; a later attempt may succeed.
    Store(StoreError),
    Unusable(Failure),
}
