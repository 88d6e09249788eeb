//! Leftovers of deleted content and of revoked credentials.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use toolgate::gateway::GatewaySettings;
use toolgate::ports::AccessKeys as _;
use toolgate::service::{Caller, NewKey, Scope, Scopes, Service, WebhookConfig, mint};
use toolgate::stores::MemoryStore;

use crate::gateway::served::{HttpAnswer, Served};
use crate::gateway::streamed::Stream;
use crate::runner::world::{Kept, given_an_agent, say};

async fn keyed(served: &Served, path: &str, secret: Option<&str>, key: &str, body: &Value) -> HttpAnswer {
    let request = served.request(Method::POST, path).header("idempotency-key", key).json(body);
    let request = match secret {
        Some(secret) => request.bearer_auth(secret),
        None => request,
    };
    HttpAnswer::of(request.send().await.unwrap()).await
}

fn key_of(scopes: Scopes) -> NewKey {
    let (name, tenant, by) = ("ci".to_owned(), "default".into(), "ann".to_owned());
    NewKey { name, tenant, principal: None, scopes, expires_at: None, by }
}

#[tokio::test]
async fn a_stored_response_is_deleted_with_its_run() {
    let turns = json!([{"say": "A secret.", "calls": [{"name": "ext_lookup"}]}, say("Another secret.")]);
    let world = given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await;
    let replies = Arc::new(MemoryStore::new());
    let served = Served::with(world, |builder| builder.anonymous(Caller::local()).idempotency(replies)).await;
    let new = json!({"input": "A secret", "external_tools": [{"name": "lookup"}]});
    let created = keyed(&served, "/v1/runs", None, "create", &new).await;
    let path = format!("/v1/runs/{}", created.text("id"));
    let (resume, fork) = (format!("{path}/resume"), format!("{path}/fork"));
    let given = json!({"answers": [{"type": "result", "call_id": created.body["pending"][0]["call_id"], "output": "A secret"}]});
    let resumed = keyed(&served, &resume, None, "resume", &given).await;
    assert_eq!(resumed.text("status"), "completed", "{resumed:?}");
    let forked = keyed(&served, &fork, None, "fork", &json!({"at": 1})).await;
    assert_eq!(forked.status, 201, "{forked:?}");

    let deleted = served.request(Method::DELETE, &path).send().await.unwrap();

    assert_eq!(deleted.status(), 204);
    for (path, key, body) in [("/v1/runs", "create", &new), (&*resume, "resume", &given)] {
        let again = keyed(&served, path, None, key, body).await;
        assert_eq!(again.problem(), "gone", "{key}");
        assert!(!again.body.to_string().contains("secret"), "{again:?}");
    }
    let again = keyed(&served, &fork, None, "fork", &json!({"at": 1})).await;
    assert_eq!(again.body, forked.body, "a fork is a run of its own");
}

#[tokio::test]
async fn a_stored_response_needs_the_same_permissions() {
    let world = given_an_agent().whose_model_says(json!([say("A secret.")])).kept(Kept::InMemory).await;
    let store = Arc::new(MemoryStore::new());
    let served = Served::with(world, |builder| builder.keys(store.clone()).idempotency(store.clone())).await;
    let key = async |scopes: Scopes| {
        let (secret, hash, key) = mint(key_of(scopes), Timestamp::now()).unwrap();
        store.put_key(&hash, &key).await.unwrap();
        secret.expose_secret().to_owned()
    };
    let (strong, same) = (key(Scopes::all()).await, key(Scopes::all()).await);
    let weak = key([Scope::RunsWrite].into_iter().collect()).await;
    let none = key([Scope::ToolsRead].into_iter().collect()).await;
    let new = json!({"input": "Hello"});
    let first = keyed(&served, "/v1/runs", Some(&strong), "k", &new).await;
    assert_eq!(first.status, 201, "{first:?}");

    let again = keyed(&served, "/v1/runs", Some(&weak), "k", &new).await;

    assert_eq!(again.problem(), "validation");
    assert!(!again.body.to_string().contains("secret"), "{again:?}");
    assert_eq!(keyed(&served, "/v1/runs", Some(&none), "k", &new).await.problem(), "forbidden");
    assert_eq!(
        keyed(&served, "/v1/runs", Some(&same), "k", &new).await.body,
        first.body,
        "a key with the same name and scopes"
    );
}

#[tokio::test]
async fn a_secret_that_was_shown_once_is_not_shown_again() {
    let world = given_an_agent().kept(Kept::InMemory).await;
    let (replies, outbound) = (Arc::new(MemoryStore::new()), WebhookConfig::new(world.webhooks()));
    let service = Service::new(world.runner.clone()).webhooks(outbound);
    let served = Served::over(service, world, |builder| builder.anonymous(Caller::local()).idempotency(replies)).await;
    let new = json!({"url": "https://example.com/hooks"});
    let created = keyed(&served, "/v1/webhook-endpoints", None, "create", &new).await;
    let rotate = format!("/v1/webhook-endpoints/{}/rotate", created.text("id"));
    let rotated = keyed(&served, &rotate, None, "rotate", &json!({})).await;
    assert!(created.text("secret") != rotated.text("secret"));
    for (path, key, body) in [("/v1/webhook-endpoints", "create", new), (&*rotate, "rotate", json!({}))] {
        let again = keyed(&served, path, None, key, &body).await;
        assert_eq!((again.problem(), &again.body["retryable"]), ("conflict", &json!(false)), "{key}");
        assert!(!again.body.to_string().contains("whsec_"), "{again:?}");
    }
}

#[tokio::test]
async fn a_stream_closes_when_its_key_is_revoked() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Hi.")]);
    let world = given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await;
    let store = Arc::new(MemoryStore::new());
    let settings = GatewaySettings { recheck: Duration::from_millis(20), ..GatewaySettings::default() };
    let served = Served::with(world, |builder| builder.keys(store.clone()).settings(settings)).await;
    let mut secrets = Vec::new();
    for name in ["mine", "hers"] {
        let new = NewKey { name: name.to_owned(), ..key_of(Scopes::all()) };
        let (secret, hash, key) = mint(new, Timestamp::now()).unwrap();
        store.put_key(&hash, &key).await.unwrap();
        secrets.push((secret.expose_secret().to_owned(), key.id.to_string()));
    }
    let [(mine, _), (hers, id)] = &secrets[..] else { unreachable!() };
    let new = json!({"input": "Hello", "external_tools": [{"name": "lookup"}]});
    let created = served.request(Method::POST, "/v1/runs").bearer_auth(mine).json(&new).send().await.unwrap();
    let run = HttpAnswer::of(created).await.text("id").to_owned();
    let watch = async |secret: &str| {
        let events = format!("/v1/runs/{run}/events");
        let mut stream = Stream::of(served.request(Method::GET, &events).bearer_auth(secret)).await;
        while stream.next().await.expect("the run is pending").event != "execution.pending" {}
        stream
    };
    let (mut stays, mut ends) = (watch(mine).await, watch(hers).await);

    let revoked =
        served.request(Method::POST, &format!("/v1/keys/{id}/revoke")).bearer_auth(mine).send().await.unwrap();

    assert_eq!(revoked.status(), 200);
    assert_eq!(ends.next().await, None);
    let cancelled = served.request(Method::POST, &format!("/v1/runs/{run}/cancel")).bearer_auth(mine);
    assert_eq!(cancelled.json(&json!({})).send().await.unwrap().status(), 200);
    assert_eq!(stays.next().await.expect("the ending").event, "execution.cancelled");
}
