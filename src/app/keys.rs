//! Keys that let applications in, made and taken back where the store is: of any tenant, by whoever may open the store.

use jiff::Timestamp;
use secrecy::SecretString;

use super::{App, AppError};
use crate::core::id::{KeyId, Principal, Tenant};
use crate::gateway::{NewKey, mint};
use crate::ports::{AccessKey, Revoked};

pub use crate::gateway::Scope;

/// A key to be made.
#[derive(Clone, Debug)]
pub struct FreshKey {
    /// What people call it.
    pub name: String,
    /// Whose things it opens.
    pub tenant: Tenant,
    /// On whose behalf all its runs act.
    pub principal: Option<Principal>,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Until when it holds.
    pub expires_at: Option<Timestamp>,
    /// Who makes it.
    pub by: String,
}

impl FreshKey {
    /// What is wrong with a name, if anything is.
    pub fn check_name(name: &str) -> Result<(), &'static str> {
        NewKey::check_name(name)
    }
}

impl App {
    /// Makes a key and keeps it: its secret, which is kept nowhere, and the key.
    pub async fn create_key(&self, fresh: FreshKey) -> Result<(SecretString, AccessKey), AppError> {
        let FreshKey { name, tenant, principal, scopes, expires_at, by } = fresh;
        let new = NewKey { name, tenant, principal, scopes: scopes.into_iter().collect(), expires_at, by };
        let (secret, hash, key) = mint(new, Timestamp::now()).map_err(|_| AppError::NoRandomness)?;
        self.store.keys().put_key(&hash, &key).await?;
        Ok((secret, key))
    }

    /// All keys, newest first.
    pub async fn keys(&self) -> Result<Vec<AccessKey>, AppError> {
        Ok(self.store.keys().keys(None).await?)
    }

    /// Takes a key back. `None` if there is none of that id.
    pub async fn revoke_key(&self, key: &KeyId, by: String) -> Result<Option<AccessKey>, AppError> {
        Ok(self.store.keys().revoke_key(key, &Revoked { at: Timestamp::now(), by }).await?)
    }

    /// Whether any key would let somebody in now.
    pub(super) async fn has_a_key(&self) -> Result<bool, AppError> {
        let now = Timestamp::now();
        Ok(self.keys().await?.iter().any(|key| key.holds(now)))
    }
}
