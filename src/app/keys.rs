//! Management of API keys from the command line, for any tenant. Access to the store is the only permission it needs.

use jiff::Timestamp;
use secrecy::SecretString;

use super::App;
use super::error::AppError;
use crate::core::id::KeyId;
use crate::ports::{AccessKey, KeyFilter, Revoked};
use crate::service::{RequestedKey, mint, successor};

pub use crate::service::{NewKey, ROTATION_OVERLAP, Scope, check_name};

impl App {
    /// Creates and stores a key. Returns the key and its secret, which is not stored.
    pub async fn create_key(&self, new: NewKey) -> Result<(SecretString, AccessKey), AppError> {
        let (secret, hash, key) = mint(new, Timestamp::now()).map_err(|_| AppError::NoRandomness)?;
        self.store.put_key(&hash, &key).await?;
        Ok((secret, key))
    }

    /// All keys, newest first.
    pub async fn keys(&self) -> Result<Vec<AccessKey>, AppError> {
        Ok(self.store.keys(&KeyFilter::default()).await?)
    }

    /// Revokes a key. `None` if there is no key with that id.
    pub async fn revoke_key(&self, key: &KeyId, by: String) -> Result<Option<AccessKey>, AppError> {
        Ok(self.store.revoke_key(key, &Revoked { at: Timestamp::now(), by }).await?)
    }

    /// Creates a successor of a key, and lets the key expire at that time. Returns the successor and its secret, which is not
    /// stored; `None` if the key is not valid any more.
    pub async fn rotate_key(
        &self,
        key: &AccessKey,
        overlap_until: Timestamp,
        by: String,
    ) -> Result<Option<(SecretString, AccessKey)>, AppError> {
        let Some(successor) = successor(key, None, Timestamp::now()) else { return Ok(None) };
        let RequestedKey { name, principal, scopes, expires_at } = successor;
        let scopes = scopes.into_iter().collect();
        let new = NewKey { name, tenant: key.tenant.clone(), principal, scopes, expires_at, by };
        let created = self.create_key(new).await?;
        self.store.overlap_key(&key.id, overlap_until).await?;
        Ok(Some(created))
    }

    /// Whether any key is currently valid.
    pub(super) async fn has_a_key(&self) -> Result<bool, AppError> {
        let now = Timestamp::now();
        Ok(self.keys().await?.iter().any(|key| key.holds(now)))
    }
}
