//! Access keys in memory, for the lifetime of the process.

use std::cmp::Reverse;

use async_trait::async_trait;
use jiff::Timestamp;
use toolgate_core::id::KeyId;
use toolgate_ports::{AccessKey, AccessKeys, KeyFilter, KeyHash, Revoked, StoreError};

use super::{MemoryStore, page};

#[async_trait]
impl AccessKeys for MemoryStore {
    async fn put_key(&self, hash: &KeyHash, key: &AccessKey) -> Result<(), StoreError> {
        self.contents().keys.insert(*hash, key.clone());
        Ok(())
    }

    async fn by_hash(&self, hash: &KeyHash) -> Result<Option<AccessKey>, StoreError> {
        Ok(self.contents().keys.get(hash).cloned())
    }

    async fn keys(&self, filter: &KeyFilter) -> Result<Vec<AccessKey>, StoreError> {
        let contents = self.contents();
        let after = filter.after.as_ref().map(|after| contents.keys.values().find(|key| key.id == *after));
        let admitted = contents.keys.values().filter(|key| filter.admits(key));
        Ok(page(admitted, after, filter.limit, |key| Reverse((key.created_at, &key.id))))
    }

    async fn revoke_key(&self, key: &KeyId, revoked: &Revoked) -> Result<Option<AccessKey>, StoreError> {
        let mut contents = self.contents();
        Ok(contents.keys.values_mut().find(|known| known.id == *key).map(|known| {
            known.revoked.get_or_insert_with(|| revoked.clone());
            known.clone()
        }))
    }

    async fn overlap_key(&self, key: &KeyId, at: Timestamp) -> Result<Option<AccessKey>, StoreError> {
        let mut contents = self.contents();
        Ok(contents.keys.values_mut().find(|known| known.id == *key).map(|known| {
            known.overlap_until(at);
            known.clone()
        }))
    }

    async fn touch(&self, key: &KeyId, at: Timestamp) -> Result<(), StoreError> {
        let mut contents = self.contents();
        if let Some(known) = contents.keys.values_mut().find(|known| known.id == *key) {
            known.used_at = known.used_at.max(Some(at));
        }
        Ok(())
    }
}
