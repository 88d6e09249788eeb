//! The keys that let applications in. Only hashes are kept: whoever reads the store can neither show a key nor make one
//! that holds.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Revoked, StoreError};
use crate::core::id::{KeyId, Principal, Tenant};

/// The SHA-256 of a key's secret. The secrets are 256 random bits, so nothing slower is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; 32]);

/// What is known of a key: everything but its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessKey {
    /// Its id: `key_` and a UUIDv7.
    pub id: KeyId,
    /// What people call it. Journals name it as `key:NAME`.
    pub name: String,
    /// Whose things it opens.
    #[serde(default)]
    pub tenant: Tenant,
    /// On whose behalf all its runs act. `None`: whoever uses it says so, run by run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// What it may do, by the names of the scopes. One that this version does not know allows nothing.
    pub scopes: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// Until when it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, give or take a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// When it was taken back, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
}

/// Which keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFilter {
    /// Only this one.
    pub id: Option<KeyId>,
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only those that come after this one in the list.
    pub after: Option<KeyId>,
    /// At most so many; `None` for all.
    pub limit: Option<usize>,
}

/// Where keys are kept.
#[async_trait]
pub trait AccessKeys: Send + Sync {
    /// Keeps a key under the hash of its secret.
    async fn put_key(&self, hash: &KeyHash, key: &AccessKey) -> Result<(), StoreError>;

    /// The key whose secret has this hash, whether it holds or not.
    async fn by_hash(&self, hash: &KeyHash) -> Result<Option<AccessKey>, StoreError>;

    /// Keys, newest first. None after a key that there is not.
    async fn keys(&self, filter: &KeyFilter) -> Result<Vec<AccessKey>, StoreError>;

    /// Takes a key back. `None` if there is none of that id; one that was taken back before stays as it is.
    async fn revoke_key(&self, key: &KeyId, revoked: &Revoked) -> Result<Option<AccessKey>, StoreError>;

    /// Notes when a key was used. An earlier time than the one that is known changes nothing.
    async fn touch(&self, key: &KeyId, at: Timestamp) -> Result<(), StoreError>;
}

impl AccessKey {
    /// Whether it lets anybody in at that time.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.expires_at.is_none_or(|until| now < until)
    }
}

impl KeyFilter {
    /// Whether a key is meant, wherever its page is.
    pub fn admits(&self, key: &AccessKey) -> bool {
        self.id.as_ref().is_none_or(|id| *id == key.id)
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == key.tenant)
    }
}

impl KeyHash {
    /// Of a secret as it is shown.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Not even the hash is for a log.
impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(…)")
    }
}
