//! Idempotency records in memory, for the lifetime of the process.

use async_trait::async_trait;
use jiff::Timestamp;
use toolgate_ports::{IdempotencyRecord, IdempotencyStore, IdempotentRequest, RequestState, StoreError};

use super::MemoryStore;
use super::contents::{RequestKey, StoredRequest};

fn place(request: &IdempotentRequest) -> RequestKey {
    (request.tenant.clone(), request.caller.clone(), request.key.clone())
}

#[async_trait]
impl IdempotencyStore for MemoryStore {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        now: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let mut contents = self.contents();
        contents.replies.retain(|_, noted| now < noted.expires_at);
        if let Some(noted) = contents.replies.get(&place(request)) {
            return Ok(Some(noted.begun.clone()));
        }
        let fate = RequestState::UnderWay { held_until: request.held_until };
        let begun = IdempotencyRecord { fingerprint: request.fingerprint.clone(), run: request.run.clone(), fate };
        contents.replies.insert(place(request), StoredRequest { begun, expires_at: request.expires_at });
        Ok(None)
    }

    async fn prolong(&self, request: &IdempotentRequest, until: Timestamp) -> Result<(), StoreError> {
        if let Some(noted) = self.contents().replies.get_mut(&place(request))
            && let RequestState::UnderWay { held_until } = &mut noted.begun.fate
        {
            *held_until = until.max(*held_until);
        }
        Ok(())
    }

    async fn take_over(&self, request: &IdempotentRequest, now: Timestamp) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        let fate = contents.replies.get_mut(&place(request)).map(|noted| &mut noted.begun.fate);
        let Some(RequestState::UnderWay { held_until }) = fate else { return Ok(false) };
        let is_free = *held_until <= now;
        if is_free {
            *held_until = request.held_until;
        }
        Ok(is_free)
    }

    async fn settle(&self, request: &IdempotentRequest, fate: &RequestState) -> Result<(), StoreError> {
        if let Some(noted) = self.contents().replies.get_mut(&place(request)) {
            noted.begun.fate = fate.clone();
        }
        Ok(())
    }

    async fn forget(&self, request: &IdempotentRequest) -> Result<(), StoreError> {
        self.contents().replies.remove(&place(request));
        Ok(())
    }
}
