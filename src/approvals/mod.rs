//! The approval cache in front of a store: most turns ask about tools that were asked about a moment ago.
//!
//! It refuses to remember a "no". A grant that somebody gives, here or on another node, therefore counts from the next
//! turn on; only the end of a grant is noticed late, and never later than the time to live.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use moka::future::Cache;

use crate::ports::{ApprovalCache, ApprovalKey, Grant, StoreError};

#[cfg(test)]
mod tests;

const REMEMBERED: u64 = 100_000;
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Remembers grants for a while and asks another cache, in one batch, for what it does not remember.
pub struct CachedApprovals {
    inner: Arc<dyn ApprovalCache>,
    granted: Cache<ApprovalKey, ()>,
}

impl CachedApprovals {
    /// Remembers what `inner` grants for `time_to_live`, at most a day: so long may a grant that was taken out of
    /// `inner` still count here. Zero remembers nothing. About 100,000 grants are kept; what is dropped is asked again.
    pub fn new(inner: Arc<dyn ApprovalCache>, time_to_live: Duration) -> Self {
        let granted = Cache::builder().max_capacity(REMEMBERED).time_to_live(time_to_live.min(LONGEST)).build();
        Self { inner, granted }
    }

    async fn remember(&self, key: &ApprovalKey) {
        self.granted.insert(key.clone(), ()).await;
    }
}

#[async_trait]
impl ApprovalCache for CachedApprovals {
    async fn granted(&self, keys: &[ApprovalKey]) -> Result<Vec<bool>, StoreError> {
        let mut answers = Vec::with_capacity(keys.len());
        for key in keys {
            answers.push(self.granted.get(key).await.is_some());
        }
        let (missed, unknown): (Vec<_>, Vec<_>) = keys
            .iter()
            .zip(&mut answers)
            .filter(|(_, known)| !**known)
            .map(|(key, answer)| (key.clone(), answer))
            .unzip();
        if missed.is_empty() {
            return Ok(answers);
        }
        let found = self.inner.granted(&missed).await?;
        for ((key, answer), granted) in missed.iter().zip(unknown).zip(found) {
            *answer = granted;
            if granted {
                self.remember(key).await;
            }
        }
        Ok(answers)
    }

    async fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        self.inner.grant(grant).await?;
        self.remember(&grant.key).await;
        Ok(())
    }
}
