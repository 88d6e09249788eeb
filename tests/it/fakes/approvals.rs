//! A memory of approvals that counts how it is asked and can be made to fail.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use toolgate::ports::{ApprovalCache, ApprovalKey, Grant, StoreError};

#[derive(Default)]
pub(crate) struct CountingApprovals {
    grants: Mutex<HashSet<ApprovalKey>>,
    batches: Mutex<Vec<Vec<String>>>,
    broken: AtomicBool,
}

impl CountingApprovals {
    /// The tools of every batch it was asked about.
    pub(crate) fn batches(&self) -> Vec<Vec<String>> {
        self.batches.lock().unwrap().clone()
    }

    /// From now on it neither answers nor remembers.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), StoreError> {
        let broken = self.broken.load(Ordering::SeqCst);
        if broken { Err(StoreError::Unavailable("the cache is broken on demand".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl ApprovalCache for CountingApprovals {
    async fn granted(&self, keys: &[ApprovalKey]) -> Result<Vec<bool>, StoreError> {
        self.batches.lock().unwrap().push(keys.iter().map(|key| key.tool.to_string()).collect());
        self.check()?;
        let grants = self.grants.lock().unwrap();
        Ok(keys.iter().map(|key| grants.contains(key)).collect())
    }

    async fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        self.check()?;
        self.grants.lock().unwrap().insert(grant.key.clone());
        Ok(())
    }
}
