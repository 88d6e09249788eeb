//! API keys authenticate applications, with their scopes and their tenant.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use toolgate::core::id::KeyId;
use toolgate::ports::{AccessKey, AccessKeys, KeyFilter, KeyHash, Revoked, StoreError};
use toolgate::service::{NewKey, Scope, Scopes, mint};
use toolgate::stores::MemoryStore;

use super::served::{HttpAnswer, Served};
use super::test_site::until;
use crate::runner::world::{Kept, given_an_agent, say};

/// A gateway with API keys, and their store.
struct Locked {
    served: Served,
    store: Arc<MemoryStore>,
}

async fn locked() -> Locked {
    let turns = json!([say("Hello yourself."), say("Hello again.")]);
    let world = given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await;
    let store = Arc::new(MemoryStore::new());
    let served = Served::with(world, |builder| builder.keys(store.clone())).await;
    Locked { served, store }
}

fn new_key(tenant: &str, scopes: Scopes) -> NewKey {
    NewKey {
        name: "ci".to_owned(),
        tenant: tenant.into(),
        principal: None,
        scopes,
        expires_at: None,
        by: "ann".to_owned(),
    }
}

impl Locked {
    async fn key(&self, new: NewKey) -> (String, AccessKey) {
        let (secret, hash, key) = mint(new, Timestamp::now()).unwrap();
        self.store.put_key(&hash, &key).await.unwrap();
        (secret.expose_secret().to_owned(), key)
    }

    async fn ask(&self, method: Method, path: &str, key: &str, body: Option<Value>) -> HttpAnswer {
        let request = self.served.request(method, path).bearer_auth(key);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        HttpAnswer::of(request.send().await.unwrap()).await
    }

    async fn get(&self, path: &str, key: &str) -> HttpAnswer {
        self.ask(Method::GET, path, key, None).await
    }

    async fn post(&self, path: &str, key: &str, body: Value) -> HttpAnswer {
        self.ask(Method::POST, path, key, Some(body)).await
    }
}

#[tokio::test]
async fn only_valid_keys_authenticate() {
    let locked = locked().await;
    let (secret, _) = locked.key(new_key("default", Scopes::all())).await;

    let created = locked.post("/v1/runs", &secret, json!({"input": "Hello"})).await;

    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.body["created_by"], "key:ci", "{created:?}");
    let without = locked.served.get("/v1/runs").await;
    assert_eq!((without.status.as_u16(), without.problem()), (401, "unauthorized"));
    assert_eq!(without.header("www-authenticate"), r#"Bearer realm="toolgate""#);
    let guess = format!("tg_{}", "A".repeat(43));
    for wrong in [guess.as_str(), &secret[..secret.len() - 1], "tg_", "x", "a.b.c", &format!("{secret}x")] {
        let refused = locked.get("/v1/runs", wrong).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (401, "unauthorized"), "{wrong}");
        assert_eq!(refused.header("www-authenticate"), r#"Bearer realm="toolgate", error="invalid_token""#);
        assert!(!refused.body.to_string().contains(wrong) || wrong.len() < 6, "{refused:?}");
    }
    let basic = locked.served.request(Method::GET, "/v1/runs").basic_auth(&secret, Some("")).send().await.unwrap();
    assert_eq!(HttpAnswer::of(basic).await.problem(), "unauthorized");
    assert_eq!(locked.served.get("/openapi.json").await.status, 200, "the description is public");
}

#[tokio::test]
async fn a_key_may_do_what_its_scopes_say_and_nothing_else() {
    let locked = locked().await;
    let (reader, _) = locked.key(new_key("default", [Scope::RunsRead].into_iter().collect())).await;

    assert_eq!(locked.get("/v1/runs", &reader).await.status, 200);
    let refused = locked.post("/v1/runs", &reader, json!({"input": "Hello"})).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden"));
    assert!(refused.text("detail").contains("runs:write"), "{refused:?}");
    assert_eq!(locked.get("/v1/keys", &reader).await.problem(), "forbidden");
}

#[tokio::test]
async fn a_caller_reads_what_its_key_stands_for() {
    let locked = locked().await;
    let scopes = [Scope::Webhooks, Scope::RunsRead].into_iter().collect();
    let (secret, _) = locked.key(NewKey { principal: Some("ann".into()), ..new_key("acme", scopes) }).await;

    let me = locked.get("/v1/me", &secret).await;

    let expected = json!({
        "object": "me", "name": "key:ci", "tenant": "acme", "principal": "ann", "scopes": ["runs:read", "webhooks"],
        "quotas": null,
    });
    assert_eq!((me.status.as_u16(), me.body), (200, expected));
    assert_eq!(locked.get("/v1/me", "tg_unknown").await.problem(), "unauthorized");
}

#[tokio::test]
async fn resources_of_another_tenant_are_not_found() {
    let locked = locked().await;
    let (acme, _) = locked.key(new_key("acme", Scopes::all())).await;
    let (bolt, of_bolt) = locked.key(new_key("bolt", Scopes::all())).await;
    let run = locked.post("/v1/runs", &acme, json!({"input": "Hello"})).await.text("id").to_owned();

    assert_eq!(locked.get(&format!("/v1/runs/{run}"), &acme).await.status, 200);
    assert_eq!(locked.get(&format!("/v1/runs/{run}"), &bolt).await.problem(), "not_found");
    assert_eq!(locked.get("/v1/runs", &bolt).await.body["data"], json!([]));
    let cancelled = locked.post(&format!("/v1/runs/{run}/cancel"), &bolt, json!({})).await;
    assert_eq!(cancelled.problem(), "not_found");
    let taken = locked.ask(Method::POST, &format!("/v1/keys/{}/revoke", of_bolt.id), &acme, None).await;
    assert_eq!(taken.problem(), "not_found");
    assert_eq!(locked.get("/v1/keys", &acme).await.body["data"].as_array().unwrap().len(), 1);
    assert_eq!(locked.get("/v1/runs", &bolt).await.status, 200, "the key is still valid");
}

#[tokio::test]
async fn an_expired_or_revoked_key_is_refused() {
    let locked = locked().await;
    let past = Timestamp::now() - SignedDuration::from_secs(1);
    let (expired, _) = locked.key(NewKey { expires_at: Some(past), ..new_key("default", Scopes::all()) }).await;
    let (revoked, key) = locked.key(new_key("default", Scopes::all())).await;
    let revocation = Revoked { at: Timestamp::now(), by: "bob".to_owned() };
    locked.store.revoke_key(&key.id, &revocation).await.unwrap();
    for secret in [expired, revoked] {
        assert_eq!(locked.get("/v1/runs", &secret).await.problem(), "unauthorized");
    }
}

#[tokio::test]
async fn a_rotated_key_is_valid_besides_its_successor_until_the_overlap_ends() {
    let locked = locked().await;
    let lifetime = SignedDuration::from_hours(48);
    let expires_at = Some(Timestamp::now() + lifetime);
    let own = Scopes::from_iter([Scope::RunsRead, Scope::Admin]);
    let (secret, key) = locked.key(NewKey { expires_at, ..new_key("default", own) }).await;
    let (other, _) = locked.key(new_key("acme", Scopes::all())).await;
    let path = format!("/v1/keys/{}/rotate", key.id);
    assert_eq!(locked.post(&path, &other, json!({})).await.problem(), "not_found");

    let rotated = locked.post(&path, &secret, json!({"overlap_s": 3600})).await;

    assert_eq!(rotated.status.as_u16(), 201);
    let new = rotated.text("secret").to_owned();
    assert_eq!((&rotated.body["name"], &rotated.body["scopes"]), (&json!("ci"), &json!(["runs:read", "admin"])));
    let until: Timestamp = rotated.text("expires_at").parse().unwrap();
    assert!(until.duration_since(Timestamp::now()) > lifetime - SignedDuration::from_mins(10), "{until}");
    for secret in [&secret, &new] {
        assert_eq!(locked.get("/v1/runs", secret).await.status, 200);
    }
    let old = locked.get(&format!("/v1/keys/{}", key.id), &new).await;
    let until: Timestamp = old.text("expires_at").parse().unwrap();
    assert!(until.duration_since(Timestamp::now()) <= SignedDuration::from_secs(3600), "{until}");

    assert_eq!(locked.post(&path, &new, json!({"overlap_s": 31_536_001})).await.problem(), "validation");
    let again = locked.post(&path, &new, json!({"overlap_s": 0})).await;
    let until: Timestamp = again.text("expires_at").parse().unwrap();
    assert!(until.duration_since(Timestamp::now()) > lifetime - SignedDuration::from_mins(10), "not of the overlap");
    assert_eq!(locked.get("/v1/runs", &secret).await.problem(), "unauthorized", "at once in this process");
    assert_eq!(locked.post(&path, &new, json!({})).await.problem(), "conflict", "it is not valid any more");
}

#[tokio::test]
async fn a_revocation_takes_effect_here_at_once_and_soon_elsewhere() {
    let locked = locked().await;
    let (admin, _) = locked.key(new_key("default", Scopes::all())).await;
    let (here, of_here) = locked.key(new_key("default", Scopes::all())).await;
    let (elsewhere, of_elsewhere) = locked.key(new_key("default", Scopes::all())).await;
    for secret in [&here, &elsewhere] {
        assert_eq!(locked.get("/v1/runs", secret).await.status, 200);
    }

    let path = format!("/v1/keys/{}/revoke", of_here.id);
    let taken = locked.ask(Method::POST, &path, &admin, None).await;
    let by_another_process = Revoked { at: Timestamp::now(), by: "bob".to_owned() };
    locked.store.revoke_key(&of_elsewhere.id, &by_another_process).await.unwrap();

    assert_eq!((taken.status.as_u16(), taken.body["active"].as_bool()), (200, Some(false)));
    assert_eq!(taken.body["revoked"]["by"], "key:ci");
    assert_eq!(locked.get("/v1/runs", &here).await.problem(), "unauthorized");
    assert_eq!(
        locked.ask(Method::POST, &path, &admin, None).await.body,
        taken.body,
        "a second revocation has no further effect"
    );
    let heard = async {
        while locked.get("/v1/runs", &elsewhere).await.status == 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), heard).await.expect("the revocation takes effect");
}

#[tokio::test]
async fn a_new_key_is_shown_once_and_is_no_wider_than_its_creator() {
    let locked = locked().await;
    let scopes = [Scope::Admin, Scope::RunsRead].into_iter().collect();
    let (admin, _) = locked.key(NewKey { principal: Some("shop".into()), ..new_key("acme", scopes) }).await;
    let until = Timestamp::now() + SignedDuration::from_hours(1);
    let wanted = json!({"name": "reader", "scopes": ["runs:read"], "expires_at": until});

    let made = locked.post("/v1/keys", &admin, wanted.clone()).await;

    assert_eq!((made.status.as_u16(), made.header("cache-control")), (201, "no-store"), "{made:?}");
    assert_eq!((made.text("created_by"), made.text("principal")), ("key:ci", "shop"));
    let secret = made.text("secret").to_owned();
    assert_eq!(locked.get("/v1/runs", &secret).await.status, 200);
    let listed = locked.get("/v1/keys", &admin).await;
    assert_eq!(listed.body["data"][0]["id"], made.body["id"]);
    assert!(!listed.body.to_string().contains(&secret), "{listed:?}");
    let change = |field: &str, value: Value| {
        let mut wanted = wanted.clone();
        wanted[field] = value;
        wanted
    };
    for (wrong, status, code) in [
        (change("scopes", json!(["runs:write"])), 403, "forbidden"),
        (change("scopes", json!([])), 422, "validation"),
        (change("scopes", json!(["everything"])), 400, "invalid_request"),
        (change("principal", json!("another")), 403, "forbidden"),
        (change("name", json!("a\nb")), 422, "validation"),
        (change("expires_at", json!("2020-01-01T00:00:00Z")), 422, "validation"),
        (change("tenant", json!("bolt")), 400, "invalid_request"),
    ] {
        let refused = locked.post("/v1/keys", &admin, wrong.clone()).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (status, code), "{wrong}");
    }
    let kept = locked.store.keys(&KeyFilter::default()).await.unwrap();
    assert_eq!(kept.len(), 2, "no refused request created a key");
}

#[tokio::test]
async fn the_last_use_of_a_key_is_recorded_in_the_background() {
    let locked = locked().await;
    let (secret, key) = locked.key(new_key("default", Scopes::all())).await;
    let before = Timestamp::now();
    locked.get("/v1/runs", &secret).await;
    let noted = async {
        loop {
            let filter = KeyFilter { id: Some(key.id.clone()), ..KeyFilter::default() };
            let known = locked.store.keys(&filter).await.unwrap().pop().unwrap();
            match known.used_at {
                Some(at) => break at,
                None => tokio::task::yield_now().await,
            }
        }
    };
    let used_at = tokio::time::timeout(Duration::from_secs(10), noted).await.expect("it is recorded");
    assert!(used_at >= before);
}

#[tokio::test]
async fn keys_are_listed_in_pages() {
    let locked = locked().await;
    let (admin, _) = locked.key(new_key("default", Scopes::all())).await;
    for _ in 0..4 {
        locked.key(new_key("default", Scopes::default())).await;
    }
    let first = locked.get("/v1/keys?limit=3", &admin).await;
    assert_eq!((first.body["data"].as_array().unwrap().len(), first.body["has_more"].as_bool()), (3, Some(true)));
    let rest = locked.get(&format!("/v1/keys?limit=3&after={}", first.text("last_id")), &admin).await;
    assert_eq!((rest.body["data"].as_array().unwrap().len(), rest.body["has_more"].as_bool()), (2, Some(false)));
    assert_eq!(locked.get("/v1/keys?after=key_of_unknown", &admin).await.problem(), "validation");
    let newest = &first.body["data"][0];
    assert_eq!(&locked.get(&format!("/v1/keys/{}", newest["id"].as_str().unwrap()), &admin).await.body, newest);
    assert_eq!(locked.get("/v1/keys/key_of_unknown", &admin).await.problem(), "not_found");
}

/// A store whose lookups can be answered late.
#[derive(Default)]
struct Late {
    inner: MemoryStore,
    /// The signal that the next lookup waits for after its read.
    answers: Mutex<Option<oneshot::Receiver<()>>>,
    has_read: Notify,
    /// When a revocation that was written is acknowledged.
    acknowledges: Mutex<Option<oneshot::Receiver<()>>>,
}

#[async_trait::async_trait]
impl AccessKeys for Late {
    async fn put_key(&self, hash: &KeyHash, key: &AccessKey) -> Result<(), StoreError> {
        self.inner.put_key(hash, key).await
    }

    async fn by_hash(&self, hash: &KeyHash) -> Result<Option<AccessKey>, StoreError> {
        let found = self.inner.by_hash(hash).await;
        let answers = self.answers.lock().unwrap().take();
        if let Some(answers) = answers {
            self.has_read.notify_one();
            answers.await.unwrap();
        }
        found
    }

    async fn keys(&self, filter: &KeyFilter) -> Result<Vec<AccessKey>, StoreError> {
        self.inner.keys(filter).await
    }

    async fn revoke_key(&self, key: &KeyId, revoked: &Revoked) -> Result<Option<AccessKey>, StoreError> {
        let taken_back = self.inner.revoke_key(key, revoked).await;
        let acknowledges = self.acknowledges.lock().unwrap().take();
        if let Some(acknowledges) = acknowledges {
            acknowledges.await.unwrap();
        }
        taken_back
    }

    async fn overlap_key(&self, key: &KeyId, at: Timestamp) -> Result<Option<AccessKey>, StoreError> {
        self.inner.overlap_key(key, at).await
    }

    async fn touch(&self, key: &KeyId, at: Timestamp) -> Result<(), StoreError> {
        self.inner.touch(key, at).await
    }
}

#[tokio::test]
async fn a_lookup_before_a_revocation_is_not_cached() {
    let world = given_an_agent().kept(Kept::InMemory).await;
    let store = Arc::new(Late::default());
    let served = Served::with(world, |builder| builder.keys(store.clone())).await;
    let mut minted = Vec::new();
    for _ in 0..2 {
        let (secret, hash, key) = mint(new_key("default", Scopes::all()), Timestamp::now()).unwrap();
        store.put_key(&hash, &key).await.unwrap();
        minted.push((secret.expose_secret().to_owned(), key.id));
    }
    let [(admin, _), (secret, id)] = &minted[..] else { unreachable!() };
    let ask = async |method: Method, path: &str, key: &str| {
        HttpAnswer::of(served.request(method, path).bearer_auth(key).send().await.unwrap()).await
    };
    let (answer, answers) = oneshot::channel();
    *store.answers.lock().unwrap() = Some(answers);
    let taken_back = async {
        store.has_read.notified().await;
        assert_eq!(ask(Method::POST, &format!("/v1/keys/{id}/revoke"), admin).await.status, 200);
        answer.send(()).unwrap();
    };

    tokio::join!(ask(Method::GET, "/v1/runs", secret), taken_back);

    assert_eq!(ask(Method::GET, "/v1/runs", secret).await.problem(), "unauthorized");
}

#[tokio::test]
async fn a_revocation_completes_after_its_client_disconnects() {
    let world = given_an_agent().kept(Kept::InMemory).await;
    let store = Arc::new(Late::default());
    let served = Served::with(world, |builder| builder.keys(store.clone())).await;
    let mut minted = Vec::new();
    for _ in 0..2 {
        let (secret, hash, key) = mint(new_key("default", Scopes::all()), Timestamp::now()).unwrap();
        store.put_key(&hash, &key).await.unwrap();
        minted.push((secret.expose_secret().to_owned(), key.id));
    }
    let [(admin, _), (secret, id)] = &minted[..] else { unreachable!() };
    let ask = async || {
        HttpAnswer::of(served.request(Method::GET, "/v1/runs").bearer_auth(secret).send().await.unwrap()).await
    };
    assert_eq!(ask().await.status, 200, "the key is cached");
    let (acknowledge, acknowledges) = oneshot::channel();
    *store.acknowledges.lock().unwrap() = Some(acknowledges);

    let mut client = TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "POST /v1/keys/{id}/revoke HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {admin}\r\ncontent-length: 0\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    until(async || store.acknowledges.lock().unwrap().is_none()).await;
    client.shutdown().await.unwrap();
    client.read_to_end(&mut Vec::new()).await.expect("the server closes the connection as well");
    acknowledge.send(()).expect("the revocation is still in progress");

    served.gateway.close().await;
    assert_eq!(ask().await.problem(), "unauthorized");
}
