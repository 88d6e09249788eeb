//! API key authenticator: looks keys up by the hash of their secret, so that the time of a comparison says nothing
//! about how close a guess is. Results are cached for a few seconds: a revocation in another process takes effect when
//! the cached result expires, one in this process at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::request::Parts;
use jiff::{SignedDuration, Timestamp};
use moka::future::Cache;
use tokio::task::JoinSet;
use toolgate_core::id::KeyId;
use toolgate_ports::{AccessKey, AccessKeys, KeyHash, StoreError};
use toolgate_service::{Caller, KEY_PREFIX, Scope, ServiceError};

use super::authenticator::{Authenticator, bearer, unauthorized};
use crate::problem::Problem;

/// How long a cached result is valid.
const CACHE_TTL: Duration = Duration::from_secs(5);
/// How many secrets the cache holds, guesses included.
const CACHE_CAPACITY: u64 = 10_000;
/// How long a revocation is remembered: longer than any lookup takes that began before it.
const REVOCATION_TTL: Duration = Duration::from_secs(60);
/// How precise the time of the last use is.
const LAST_USE_PRECISION: SignedDuration = SignedDuration::from_secs(60);

/// Authenticates requests by API key.
pub struct ApiKeyAuthenticator {
    store: Arc<dyn AccessKeys>,
    known: Cache<KeyHash, Option<Arc<AccessKey>>>,
    /// Keys that were revoked in this process: a lookup that began earlier may still return them.
    revoked_here: Cache<KeyId, ()>,
    used: Mutex<Used>,
}

/// When keys were last used, as far as it was written, and the writes in progress: no request waits for them, and they
/// end with the authenticator.
#[derive(Default)]
struct Used {
    noted: HashMap<KeyId, Timestamp>,
    writes: JoinSet<()>,
}

impl ApiKeyAuthenticator {
    /// An authenticator for the keys of this store.
    pub fn new(store: Arc<dyn AccessKeys>) -> Self {
        let known = Cache::builder().max_capacity(CACHE_CAPACITY).time_to_live(CACHE_TTL).build();
        let revoked_here = Cache::builder().time_to_live(REVOCATION_TTL).build();
        Self { store, known, revoked_here, used: Mutex::default() }
    }

    /// The store of the keys.
    pub(super) fn store(&self) -> &dyn AccessKeys {
        &*self.store
    }

    /// Rejects a key that was revoked in the store, also where it is cached.
    pub(super) async fn note_revocation(&self, key: KeyId) {
        self.revoked_here.insert(key, ()).await;
    }

    async fn find(&self, secret: &str) -> Result<Option<Arc<AccessKey>>, Problem> {
        let hash = KeyHash::for_secret(secret);
        let lookup = async { Ok(self.store.by_hash(&hash).await?.map(Arc::new)) };
        self.known.try_get_with(hash, lookup).await.map_err(|error: Arc<StoreError>| ServiceError::from(&*error).into())
    }

    /// Records the time at which a key was used, unless it was written a moment ago. The request does not wait for it.
    fn note_use(&self, key: &AccessKey, now: Timestamp) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = used.noted.get(&key.id).copied().max(key.used_at);
        if noted.is_some_and(|noted| now.duration_since(noted) < LAST_USE_PRECISION) {
            return;
        }
        used.noted.insert(key.id.clone(), now);
        while used.writes.try_join_next().is_some() {}
        let (store, id) = (self.store.clone(), key.id.clone());
        used.writes.spawn(async move {
            if let Err(error) = store.touch(&id, now).await {
                tracing::warn!(key = %id, %error, "failed to record last use of API key");
            }
        });
    }
}

#[async_trait]
impl Authenticator for ApiKeyAuthenticator {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Caller>, Problem> {
        let Some(secret) = bearer(&request.headers).filter(|token| token.starts_with(KEY_PREFIX)) else {
            return Ok(None);
        };
        let Some(key) = self.find(secret).await? else {
            tracing::info!("unknown API key");
            return Err(unauthorized(true));
        };
        let now = Timestamp::now();
        let is_revoked = key.revoked.is_some() || self.revoked_here.contains_key(&key.id);
        if is_revoked || !key.holds(now) {
            let why = if is_revoked { "revoked" } else { "expired" };
            tracing::info!(key = %key.id, name = key.name, why, "API key rejected");
            return Err(unauthorized(true));
        }
        self.note_use(&key, now);
        Ok(Some(caller(&key)))
    }
}

fn caller(key: &AccessKey) -> Caller {
    Caller {
        tenant: key.tenant.clone(),
        name: format!("key:{}", key.name).into(),
        principal: key.principal.clone(),
        scopes: key.scopes.iter().filter_map(|scope| Scope::parse(scope)).collect(),
    }
}
