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
        contents.requests.retain(|_, stored| now < stored.expires_at);
        if let Some(stored) = contents.requests.get(&place(request)) {
            return Ok(Some(stored.record.clone()));
        }
        let state = RequestState::UnderWay { held_until: request.held_until };
        let record = IdempotencyRecord { fingerprint: request.fingerprint.clone(), run: request.run.clone(), state };
        contents.requests.insert(place(request), StoredRequest { record, expires_at: request.expires_at });
        Ok(None)
    }

    async fn prolong(&self, request: &IdempotentRequest, until: Timestamp) -> Result<(), StoreError> {
        if let Some(stored) = self.contents().requests.get_mut(&place(request))
            && let RequestState::UnderWay { held_until } = &mut stored.record.state
        {
            *held_until = until.max(*held_until);
        }
        Ok(())
    }

    async fn take_over(&self, request: &IdempotentRequest, now: Timestamp) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        let state = contents.requests.get_mut(&place(request)).map(|stored| &mut stored.record.state);
        let Some(RequestState::UnderWay { held_until }) = state else { return Ok(false) };
        let is_free = *held_until <= now;
        if is_free {
            *held_until = request.held_until;
        }
        Ok(is_free)
    }

    async fn settle(&self, request: &IdempotentRequest, state: &RequestState) -> Result<(), StoreError> {
        if let Some(stored) = self.contents().requests.get_mut(&place(request)) {
            stored.record.state = state.clone();
        }
        Ok(())
    }

    async fn forget(&self, request: &IdempotentRequest) -> Result<(), StoreError> {
        self.contents().requests.remove(&place(request));
        Ok(())
    }
}
