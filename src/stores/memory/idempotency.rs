//! Idempotency records in memory, for the lifetime of the process.

use async_trait::async_trait;
use jiff::Timestamp;
use toolgate_core::id::{RunId, Tenant};
use toolgate_ports::{IdempotencyRecord, IdempotencyStore, IdempotentRequest, RequestState, StoreError};

use super::MemoryStore;

/// Tenant, caller and idempotency key.
pub(super) type RequestKey = (Tenant, String, String);

/// A request and the time its record expires.
#[derive(Debug)]
pub(super) struct StoredRequest {
    begun: IdempotencyRecord,
    expires_at: Timestamp,
}

impl StoredRequest {
    /// Drops the stored response if it quotes the run, and keeps the fact that the request was answered.
    pub(super) fn forget_answer(&mut self, run: &RunId) {
        if matches!(&self.begun.state, RequestState::Answered(reply) if reply.run.as_ref() == Some(run)) {
            self.begun.state = RequestState::NotStored;
        }
    }
}

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
        let state = RequestState::UnderWay { held_until: request.held_until };
        let begun = IdempotencyRecord { fingerprint: request.fingerprint.clone(), run: request.run.clone(), state };
        contents.replies.insert(place(request), StoredRequest { begun, expires_at: request.expires_at });
        Ok(None)
    }

    async fn prolong(&self, request: &IdempotentRequest, until: Timestamp) -> Result<(), StoreError> {
        if let Some(noted) = self.contents().replies.get_mut(&place(request))
            && let RequestState::UnderWay { held_until } = &mut noted.begun.state
        {
            *held_until = until.max(*held_until);
        }
        Ok(())
    }

    async fn take_over(&self, request: &IdempotentRequest, now: Timestamp) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        let state = contents.replies.get_mut(&place(request)).map(|noted| &mut noted.begun.state);
        let Some(RequestState::UnderWay { held_until }) = state else { return Ok(false) };
        let is_free = *held_until <= now;
        if is_free {
            *held_until = request.held_until;
        }
        Ok(is_free)
    }

    async fn settle(&self, request: &IdempotentRequest, state: &RequestState) -> Result<(), StoreError> {
        if let Some(noted) = self.contents().replies.get_mut(&place(request)) {
            noted.begun.state = state.clone();
        }
        Ok(())
    }

    async fn forget(&self, request: &IdempotentRequest) -> Result<(), StoreError> {
        self.contents().replies.remove(&place(request));
        Ok(())
    }
}
