//! API keys of applications. Only hashes are stored: read access to the store is not enough to use a key or to create
//! one.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolgate_core::id::{KeyId, Principal, Tenant};

use super::{Revoked, StoreError};

/// The SHA-256 of a key's secret. The secrets are 256 random bits, so nothing slower is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; 32]);

/// An API key: everything but its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessKey {
    /// Its id: `key_` and a UUIDv7.
    pub id: KeyId,
    /// Its name for people. Journals name it as `key:NAME`.
    pub name: String,
    /// The tenant that it gives access to.
    #[serde(default)]
    pub tenant: Tenant,
    /// The principal of all its runs. `None`: the caller names one for each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// Its scopes by name. A scope that this version does not know allows nothing.
    pub scopes: Vec<String>,
    pub created_at: Timestamp,
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Until when it is valid besides its successor, if it was rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlaps_until: Option<Timestamp>,
    /// When it was last used, to about a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
}

/// A filter of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFilter {
    /// Only this one.
    pub id: Option<KeyId>,
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only those after this one in the list.
    pub after: Option<KeyId>,
    /// The maximum number; `None` for all.
    pub limit: Option<usize>,
}

/// The store of API keys.
#[async_trait]
pub trait AccessKeys: Send + Sync {
    /// Stores a key under the hash of its secret.
    async fn put_key(&self, hash: &KeyHash, key: &AccessKey) -> Result<(), StoreError>;

    /// The key whose secret has this hash, whether it is valid or not.
    async fn by_hash(&self, hash: &KeyHash) -> Result<Option<AccessKey>, StoreError>;

    /// Keys, newest first. Empty after a key that does not exist.
    async fn keys(&self, filter: &KeyFilter) -> Result<Vec<AccessKey>, StoreError>;

    /// Revokes a key. `None` if there is no such key; an earlier revocation stays as it is.
    async fn revoke_key(&self, key: &KeyId, revoked: &Revoked) -> Result<Option<AccessKey>, StoreError>;

    /// Ends the overlap of a rotated key with its successor at that time, unless it ends earlier. `None` if there is no such
    /// key.
    async fn overlap_key(&self, key: &KeyId, at: Timestamp) -> Result<Option<AccessKey>, StoreError>;

    /// Records the use of a key. A time before the recorded one changes nothing.
    async fn touch(&self, key: &KeyId, at: Timestamp) -> Result<(), StoreError>;
}

impl AccessKey {
    /// Whether it is valid at that time.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.valid_until().is_none_or(|until| now < until)
    }

    /// When it expires, by itself or after its rotation.
    pub fn valid_until(&self) -> Option<Timestamp> {
        self.expires_at.into_iter().chain(self.overlaps_until).min()
    }

    /// Ends the overlap with its successor at that time, unless it ends earlier.
    pub fn overlap_until(&mut self, at: Timestamp) {
        self.overlaps_until = Some(self.overlaps_until.map_or(at, |until| until.min(at)));
    }
}

impl KeyFilter {
    /// Whether a key matches, regardless of the page.
    pub fn admits(&self, key: &AccessKey) -> bool {
        self.id.as_ref().is_none_or(|id| *id == key.id)
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == key.tenant)
    }
}

impl KeyHash {
    /// The hash of a secret in the clear.
    pub fn for_secret(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Not even the hash may be logged.
impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}
