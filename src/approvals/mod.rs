//! The approval cache in front of a store: most turns ask about tools that were asked about a moment ago.
//!
//! A grant that was taken back elsewhere, or that a clock elsewhere ended, counts here for at most the time to live. That
//! nothing is granted is remembered, too, but more briefly; a grant that is given here counts at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use moka::Expiry;
use moka::future::Cache;

use crate::core::id::GrantId;
use crate::core::run::Granted;
use crate::ports::{ApprovalCache, Asker, Grant, GrantFilter, Guarded, Revoked, StoreError};

#[cfg(test)]
mod tests;

const REMEMBERED: u64 = 100_000;
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Remembers what covers a tool for a while and asks another cache, in one batch, for what it does not remember.
pub struct CachedApprovals {
    inner: Arc<dyn ApprovalCache>,
    found: Cache<Question, Arc<[Granted]>>,
    /// How often something was granted or taken back here. What was asked before then is asked again: an answer that was
    /// under way meanwhile is remembered for an age that is over.
    age: AtomicU64,
}

/// What was asked, and in which age.
type Question = (u64, Asker, Guarded);

/// For how long an answer may be used.
struct Lifetimes {
    granted: Duration,
    nothing: Duration,
}

impl Lifetimes {
    fn of(&self, found: &[Granted]) -> Duration {
        if found.is_empty() { self.nothing } else { self.granted }
    }
}

impl Expiry<Question, Arc<[Granted]>> for Lifetimes {
    fn expire_after_create(&self, _: &Question, found: &Arc<[Granted]>, _: Instant) -> Option<Duration> {
        Some(self.of(found))
    }

    /// What takes the place of an answer that is over lives as long as any other.
    fn expire_after_update(
        &self,
        _: &Question,
        found: &Arc<[Granted]>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(self.of(found))
    }
}

impl CachedApprovals {
    /// Remembers what `inner` grants for `granted`, at most a day: so long may a grant that was taken out of `inner`
    /// still be found here. That it grants nothing is remembered for `nothing`: so long may a grant that was given
    /// elsewhere be overlooked. About 100,000 answers are kept; what is dropped is asked again.
    pub fn new(inner: Arc<dyn ApprovalCache>, granted: Duration, nothing: Duration) -> Self {
        let lifetimes = Lifetimes { granted: granted.min(LONGEST), nothing: nothing.min(granted).min(LONGEST) };
        let found = Cache::builder().max_capacity(REMEMBERED).expire_after(lifetimes).build();
        Self { inner, found, age: AtomicU64::new(0) }
    }

    /// Forgets what was found: something changed.
    fn forget(&self) {
        self.age.fetch_add(1, Ordering::AcqRel);
    }
}

#[async_trait]
impl ApprovalCache for CachedApprovals {
    async fn granted(&self, asker: &Asker, tools: &[Guarded], now: Timestamp) -> Result<Vec<Granted>, StoreError> {
        let age = self.age.load(Ordering::Acquire);
        let (mut granted, mut missed) = (Vec::new(), Vec::new());
        for guarded in tools {
            match self.found.get(&(age, asker.clone(), guarded.clone())).await {
                Some(found) => granted.extend(found.iter().cloned()),
                None => missed.push(guarded.clone()),
            }
        }
        if !missed.is_empty() {
            let fresh = self.inner.granted(asker, &missed, now).await?;
            for guarded in missed {
                let of_it = fresh.iter().filter(|granted| granted.tool == guarded.tool).cloned().collect();
                self.found.insert((age, asker.clone(), guarded), of_it).await;
            }
            granted.extend(fresh);
        }
        granted.retain(|granted| granted.expires_at.is_none_or(|until| now < until));
        Ok(granted)
    }

    /// Not remembered: it is asked once for each tier that is sent on the strength of grants.
    async fn hold(&self, grants: &[GrantId], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        self.inner.hold(grants, now).await
    }

    async fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        self.inner.grant(grant).await?;
        self.forget();
        Ok(())
    }

    async fn grants(&self, filter: &GrantFilter, now: Timestamp) -> Result<Vec<Grant>, StoreError> {
        self.inner.grants(filter, now).await
    }

    async fn revoke(&self, grant: &GrantId, revoked: &Revoked) -> Result<Option<Grant>, StoreError> {
        let known = self.inner.revoke(grant, revoked).await?;
        self.forget();
        Ok(known)
    }
}
