//! Keys that let applications in, made and taken back where the store is: of any tenant, by whoever may open the store.

use jiff::Timestamp;
use secrecy::SecretString;

use super::{App, AppError};
use crate::core::id::KeyId;
use crate::gateway::mint;
use crate::ports::{AccessKey, KeyFilter, Revoked};

pub use crate::gateway::{NewKey, Scope, check_name};

impl App {
    /// Makes a key and keeps it: its secret, which is kept nowhere, and the key.
    pub async fn create_key(&self, new: NewKey) -> Result<(SecretString, AccessKey), AppError> {
        let (secret, hash, key) = mint(new, Timestamp::now()).map_err(|_| AppError::NoRandomness)?;
        self.store.keys().put_key(&hash, &key).await?;
        Ok((secret, key))
    }

    /// All keys, newest first.
    pub async fn keys(&self) -> Result<Vec<AccessKey>, AppError> {
        Ok(self.store.keys().keys(&KeyFilter::default()).await?)
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
