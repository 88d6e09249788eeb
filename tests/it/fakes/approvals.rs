//! An approval cache that counts its lookups and can be made to fail.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use toolgate::core::id::GrantId;
use toolgate::core::run::ToolGrant;
use toolgate::ports::{ApprovalCache, Grant, GrantContext, GrantFilter, GuardedTool, Revoked, StoreError};
use toolgate::stores::MemoryStore;

#[derive(Default)]
pub(crate) struct CountingApprovals {
    kept: MemoryStore,
    batches: Mutex<Vec<Vec<String>>>,
    holds: Mutex<Vec<usize>>,
    broken: AtomicBool,
    fickle: AtomicBool,
}

impl CountingApprovals {
    /// The tools of each lookup.
    pub(crate) fn batches(&self) -> Vec<Vec<String>> {
        self.batches.lock().unwrap().clone()
    }

    /// The number of grants in each check right before their use.
    pub(crate) fn holds(&self) -> Vec<usize> {
        self.holds.lock().unwrap().clone()
    }

    /// Makes every later operation fail.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    /// Revokes every grant right after it was found.
    pub(crate) fn revoke_when_looked_up(&self) {
        self.fickle.store(true, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), StoreError> {
        let broken = self.broken.load(Ordering::SeqCst);
        if broken { Err(StoreError::Unavailable("the cache is broken on demand".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl ApprovalCache for CountingApprovals {
    async fn granted(
        &self,
        context: &GrantContext,
        tools: &[GuardedTool],
        now: Timestamp,
    ) -> Result<Vec<ToolGrant>, StoreError> {
        self.batches.lock().unwrap().push(tools.iter().map(|guarded| guarded.tool.to_string()).collect());
        self.check()?;
        let found = self.kept.granted(context, tools, now).await?;
        if self.fickle.load(Ordering::SeqCst) {
            for granted in &found {
                self.kept.revoke(&granted.grant, &Revoked { at: now, by: "ann".into() }).await?;
            }
        }
        Ok(found)
    }

    async fn hold(&self, grants: &[GrantId], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        assert!(!grants.is_empty(), "an empty lookup");
        self.holds.lock().unwrap().push(grants.len());
        self.check()?;
        self.kept.hold(grants, now).await
    }

    async fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        self.check()?;
        self.kept.grant(grant).await
    }

    async fn grants(&self, filter: &GrantFilter, now: Timestamp) -> Result<Vec<Grant>, StoreError> {
        self.check()?;
        self.kept.grants(filter, now).await
    }

    async fn revoke(&self, grant: &GrantId, revoked: &Revoked) -> Result<Option<Grant>, StoreError> {
        self.check()?;
        self.kept.revoke(grant, revoked).await
    }
}
