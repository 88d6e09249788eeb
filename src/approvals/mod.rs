//! Approval cache in front of a store: most turns look up tools that were looked up a moment ago.
//!
//! A grant that another process revoked, or that expired by another clock, stays valid here for at most the time to
//! live. The absence of a grant is cached too, but for a shorter time. A grant that this process stores is valid at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use moka::Expiry;
use moka::future::Cache;
use toolgate_core::id::GrantId;
use toolgate_core::run::ToolGrant;
use toolgate_ports::{ApprovalCache, Grant, GrantContext, GrantFilter, GuardedTool, Revoked, StoreError};

#[cfg(test)]
mod tests;

const REMEMBERED: u64 = 100_000;
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Caches lookups for a while and passes misses to another cache, in one batch.
pub struct CachedApprovals {
    inner: Arc<dyn ApprovalCache>,
    found: Cache<Question, Arc<[ToolGrant]>>,
    /// The number of grants and revocations in this process. It is part of the key, so each of them invalidates all
    /// entries, including answers to lookups that were in flight.
    age: AtomicU64,
}

/// The key: the generation, the context and the tool.
type Question = (u64, GrantContext, GuardedTool);

/// Times to live.
struct Lifetimes {
    granted: Duration,
    nothing: Duration,
}

impl Lifetimes {
    fn time_to_live(&self, found: &[ToolGrant]) -> Duration {
        if found.is_empty() { self.nothing } else { self.granted }
    }
}

impl Expiry<Question, Arc<[ToolGrant]>> for Lifetimes {
    fn expire_after_create(&self, _: &Question, found: &Arc<[ToolGrant]>, _: Instant) -> Option<Duration> {
        Some(self.time_to_live(found))
    }

    /// An updated entry lives as long as a new one.
    fn expire_after_update(
        &self,
        _: &Question,
        found: &Arc<[ToolGrant]>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(self.time_to_live(found))
    }
}

impl CachedApprovals {
    /// Caches grants of `inner` for `granted`, at most a day: a grant that was revoked in `inner` may be found here for
    /// that long. Caches their absence for `nothing`: a grant that another process stored may be missed for that long.
    /// The cache holds about 100,000 entries; evicted entries are looked up again.
    pub fn new(inner: Arc<dyn ApprovalCache>, granted: Duration, nothing: Duration) -> Self {
        let lifetimes = Lifetimes { granted: granted.min(LONGEST), nothing: nothing.min(granted).min(LONGEST) };
        let found = Cache::builder().max_capacity(REMEMBERED).expire_after(lifetimes).build();
        Self { inner, found, age: AtomicU64::new(0) }
    }

    /// Invalidates all entries after a change.
    fn forget(&self) {
        self.age.fetch_add(1, Ordering::AcqRel);
    }
}

#[async_trait]
impl ApprovalCache for CachedApprovals {
    async fn granted(
        &self,
        context: &GrantContext,
        tools: &[GuardedTool],
        now: Timestamp,
    ) -> Result<Vec<ToolGrant>, StoreError> {
        let age = self.age.load(Ordering::Acquire);
        let (mut granted, mut missed) = (Vec::new(), Vec::new());
        for guarded in tools {
            match self.found.get(&(age, context.clone(), guarded.clone())).await {
                Some(found) => granted.extend(found.iter().cloned()),
                None => missed.push(guarded.clone()),
            }
        }
        if !missed.is_empty() {
            let fresh = self.inner.granted(context, &missed, now).await?;
            for guarded in missed {
                let of_it = fresh.iter().filter(|granted| granted.tool == guarded.tool).cloned().collect();
                self.found.insert((age, context.clone(), guarded), of_it).await;
            }
            granted.extend(fresh);
        }
        granted.retain(|granted| granted.expires_at.is_none_or(|until| now < until));
        Ok(granted)
    }

    /// Not cached: there is one lookup for each tier that is sent on the basis of grants.
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
