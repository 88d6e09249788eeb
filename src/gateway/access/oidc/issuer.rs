//! The issuer's published keys. They are fetched when a token wants one, kept for an hour, and fetched again for a key that
//! is not among them, but never more often than every half minute: a storm of made-up key ids is not passed on. Keys that
//! were had once stay in use while the issuer is down.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jsonwebtoken::jwk::Jwk;
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Refused, algorithm_of};

const PATIENCE: Duration = Duration::from_secs(5);
const LARGEST: usize = 1024 * 1024;

/// How soon keys are asked for again while there are none at all.
const WITHOUT_KEYS: Duration = Duration::from_secs(2);

/// Where keys come from, and those that came.
pub(super) struct Issuer {
    name: String,
    client: Client,
    fresh: Duration,
    pause: Duration,
    kept: ArcSwapOption<Kept>,
    /// When keys were asked for last; held by whoever is asking.
    asked: Mutex<Option<Instant>>,
}

struct Kept {
    keys: Vec<Arc<Jwk>>,
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
        let client = Client::builder().connect_timeout(PATIENCE).timeout(PATIENCE).redirect(redirects).build()?;
        let (kept, asked) = (ArcSwapOption::empty(), Mutex::new(None));
        Ok(Self { name: name.to_owned(), client, fresh, pause, kept, asked })
    }

    /// The key of that id; without an id, the only one there is.
    pub(super) async fn key(&self, id: Option<&str>) -> Result<Arc<Jwk>, Refused> {
        let kept = self.kept.load_full();
        if let Some(kept) = kept.as_deref().filter(|kept| kept.since.elapsed() < self.fresh)
            && let Some(key) = kept.find(id)
        {
            return Ok(key);
        }
        self.refresh(kept.as_ref()).await;
        let Some(kept) = self.kept.load_full() else { return Err(Refused::NoKeys(WITHOUT_KEYS)) };
        kept.find(id).ok_or_else(|| Refused::token("the issuer has no such key"))
    }

    /// Asks for the keys again, unless somebody has since `seen` was looked at, or has too short a time ago.
    async fn refresh(&self, seen: Option<&Arc<Kept>>) {
        let mut asked = self.asked.lock().await;
        let now = self.kept.load_full();
        if now.as_ref().map(Arc::as_ptr) != seen.map(Arc::as_ptr) {
            return;
        }
        let pause = if now.is_some() { self.pause } else { self.pause.min(WITHOUT_KEYS) };
        if asked.is_some_and(|asked| asked.elapsed() < pause) {
            return;
        }
        *asked = Some(Instant::now());
        match self.fetch().await {
            Ok(keys) => self.kept.store(Some(Arc::new(Kept { keys, since: Instant::now() }))),
            Err(why) => tracing::warn!(issuer = self.name, why, "the issuer's keys cannot be had"),
        }
    }

    async fn fetch(&self) -> Result<Vec<Arc<Jwk>>, String> {
        let place = format!("{}/.well-known/openid-configuration", self.name.trim_end_matches('/'));
        let discovered: Discovered = self.get(&place).await?;
        if discovered.issuer != self.name {
            return Err(format!("it calls itself `{}`", discovered.issuer));
        }
        let published: Published = self.get(&discovered.jwks_uri).await?;
        // One key of a kind that is not known must not cost the others.
        let keys = published.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        Ok(keys.filter(|key| algorithm_of(key).is_some()).map(Arc::new).collect())
    }

    async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let answered = self.client.get(url).send().await.and_then(reqwest::Response::error_for_status);
        let mut response = answered.map_err(|error| error.to_string())?;
        if !response.status().is_success() {
            return Err(format!("{url} answers {}", response.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
            body.extend_from_slice(&chunk);
            if body.len() > LARGEST {
                return Err(format!("{url} answers with more than {LARGEST} bytes"));
            }
        }
        serde_json::from_slice(&body).map_err(|error| format!("{url} answers with no such document: {error}"))
    }
}

impl Kept {
    fn find(&self, id: Option<&str>) -> Option<Arc<Jwk>> {
        match (id, self.keys.as_slice()) {
            (Some(id), keys) => keys.iter().find(|key| key.common.key_id.as_deref() == Some(id)).cloned(),
            (None, [only]) => Some(only.clone()),
            (None, _) => None,
        }
    }
}
