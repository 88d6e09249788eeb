//! API keys of one tenant. Those of other tenants are out of reach.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::KeyId;
use toolgate_ports::{AccessKey, KeyFilter, KeyHash, Revoked, StoreError};
use toolgate_service::Caller;

use super::{ApiKeyAuthenticator, Authorized};
use crate::problem::Problem;
use crate::state::Gateway;

/// The API keys of the caller's tenant.
pub(crate) struct TenantKeys {
    authenticator: Arc<ApiKeyAuthenticator>,
    caller: Caller,
}

impl TenantKeys {
    /// The caller.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Stores a new key.
    pub(crate) async fn put(&self, hash: &KeyHash, key: &AccessKey) -> Result<(), StoreError> {
        self.authenticator.store().put_key(hash, key).await
    }

    /// A page of the keys, newest first.
    pub(crate) async fn page(&self, after: Option<KeyId>, most: usize) -> Result<Vec<AccessKey>, StoreError> {
        let tenant = Some(self.caller.tenant.clone());
        self.authenticator.store().keys(&KeyFilter { id: None, tenant, after, limit: Some(most) }).await
    }

    /// One of the keys.
    pub(crate) async fn find(&self, id: &str) -> Result<Option<AccessKey>, StoreError> {
        let tenant = Some(self.caller.tenant.clone());
        let filter = KeyFilter { id: Some(id.into()), tenant, ..KeyFilter::default() };
        Ok(self.authenticator.store().keys(&filter).await?.pop())
    }

    /// Ends the overlap of one of the keys with its successor at that time.
    pub(crate) async fn overlap(&self, key: &KeyId, at: Timestamp) -> Result<(), StoreError> {
        self.authenticator.store().overlap_key(key, at).await?;
        if at <= Timestamp::now() {
            self.authenticator.note_revocation(key.clone()).await;
        }
        Ok(())
    }

    /// Revokes one of the keys; takes effect at once in this process. `None` if there is no key of that id.
    pub(crate) async fn revoke(&self, id: &str) -> Result<Option<AccessKey>, StoreError> {
        let Some(key) = self.find(id).await? else { return Ok(None) };
        let revoked = Revoked { at: Timestamp::now(), by: self.caller.name.as_ref().to_owned() };
        let revoked = self.authenticator.store().revoke_key(&key.id, &revoked).await?;
        self.authenticator.note_revocation(key.id).await;
        Ok(revoked)
    }
}

impl FromRequestParts<Gateway> for TenantKeys {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Authorized(caller) = Authorized::from_request_parts(parts, gateway).await?;
        match &gateway.access().keys {
            Some(keys) => Ok(Self { authenticator: Arc::clone(keys), caller }),
            None => Err(Problem::new(ErrorCode::Forbidden, "this server does not use API keys of its own")),
        }
    }
}
