//! The issuer's published keys. They are fetched when a token needs one, kept for an hour, and fetched again for an
//! unknown key, but at most once every half minute: a storm of made-up key ids does not reach the issuer. Keys that
//! were fetched once stay in use while the issuer is down, and a caller whose key is known hardly waits while the
//! issuer is slow.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout};

use super::TokenRejection;
use super::jwks::Key;

/// The timeout of one request to the issuer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest document that the issuer may send, in bytes.
const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;

/// How long a caller whose key is known waits for fresh keys: the key may have been withdrawn, or the issuer may hang.
const REFRESH_WAIT: Duration = Duration::from_secs(1);

/// The pause between attempts while there are no keys at all.
const RETRY_WITHOUT_KEYS: Duration = Duration::from_secs(2);

/// The issuer, and its keys.
pub(super) struct Issuer {
    name: String,
    client: Client,
    fresh: Duration,
    pause: Duration,
    cached: ArcSwapOption<CachedKeys>,
    /// When the keys were last requested; locked during a request.
    last_request: Arc<Mutex<Option<Instant>>>,
}

struct CachedKeys {
    keys: Vec<Arc<Key>>,
    since: Instant,
}

#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

impl Issuer {
    pub(super) fn new(name: &str, fresh: Duration, pause: Duration) -> Result<Self, reqwest::Error> {
        let redirects = reqwest::redirect::Policy::none();
        let client =
            Client::builder().connect_timeout(REQUEST_TIMEOUT).timeout(REQUEST_TIMEOUT).redirect(redirects).build()?;
        let (cached, last_request) = (ArcSwapOption::empty(), Arc::default());
        Ok(Self { name: name.to_owned(), client, fresh, pause, cached, last_request })
    }

    /// The key of that id; without an id, the issuer's only key.
    pub(super) async fn key(self: &Arc<Self>, id: Option<&str>) -> Result<Arc<Key>, TokenRejection> {
        let cached = self.cached.load_full();
        match cached.as_deref().and_then(|cached| Some((cached.since.elapsed() < self.fresh, cached.find(id)?))) {
            Some((true, key)) => return Ok(key),
            Some((false, key)) => match self.last_request.clone().try_lock_owned() {
                Ok(last_request) => {
                    let _ = timeout(REFRESH_WAIT, self.refresh(last_request, cached.as_ref())).await;
                }
                // Another request is fetching them.
                Err(_) => return Ok(key),
            },
            None => {
                let last_request = self.last_request.clone().lock_owned().await;
                self.refresh(last_request, cached.as_ref()).await;
            }
        }
        let Some(cached) = self.cached.load_full() else { return Err(TokenRejection::NoKeys(RETRY_WITHOUT_KEYS)) };
        cached.find(id).ok_or_else(|| TokenRejection::token("the issuer has no such key"))
    }

    /// Fetches the keys again, unless another request did since `seen` was read, or the last attempt is too recent. The
    /// fetch runs to its end even if the client disconnects: otherwise such a client could keep everyone from fresh
    /// keys.
    async fn refresh(
        self: &Arc<Self>,
        mut last_request: OwnedMutexGuard<Option<Instant>>,
        seen: Option<&Arc<CachedKeys>>,
    ) {
        let now = self.cached.load_full();
        if now.as_ref().map(Arc::as_ptr) != seen.map(Arc::as_ptr) {
            return;
        }
        let pause = if now.is_some() { self.pause } else { self.pause.min(RETRY_WITHOUT_KEYS) };
        if last_request.is_some_and(|last_request| last_request.elapsed() < pause) {
            return;
        }
        *last_request = Some(Instant::now());
        let issuer = self.clone();
        let fetched = tokio::spawn(async move {
            match issuer.fetch().await {
                Ok(keys) => issuer.cached.store(Some(Arc::new(CachedKeys { keys, since: Instant::now() }))),
                Err(why) => tracing::warn!(issuer = issuer.name, why, "failed to fetch issuer keys"),
            }
            drop(last_request);
        });
        // The task ends by itself: each of its requests has a timeout.
        let _ = fetched.await;
    }

    async fn fetch(&self) -> Result<Vec<Arc<Key>>, String> {
        let place = format!("{}/.well-known/openid-configuration", self.name.trim_end_matches('/'));
        let discovered: Discovered = self.get(&place).await?;
        if discovered.issuer != self.name {
            return Err(format!("it reports the issuer `{}`", discovered.issuer));
        }
        let published: Published = self.get(&discovered.jwks_uri).await?;
        // One key of an unknown kind must not cost the others.
        let keys = published.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        Ok(keys.filter_map(Key::from_jwk).map(Arc::new).collect())
    }

    async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let mut response = self.client.get(url).send().await.map_err(|error| error.to_string())?;
        if !response.status().is_success() {
            return Err(format!("{url} answers {}", response.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_DOCUMENT_BYTES {
                return Err(format!("{url} answers with more than {MAX_DOCUMENT_BYTES} bytes"));
            }
        }
        serde_json::from_slice(&body).map_err(|error| format!("{url} answers with an invalid document: {error}"))
    }
}

impl CachedKeys {
    fn find(&self, id: Option<&str>) -> Option<Arc<Key>> {
        match (id, self.keys.as_slice()) {
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)).cloned(),
            (None, [only]) => Some(only.clone()),
            (None, _) => None,
        }
    }
}
