//! Webhook endpoints are created, updated, tested, rotated and deleted, each by its own tenant.

use reqwest::Method;
use serde_json::json;
use toolgate::service::{Caller, ConfiguredWebhook, Scope, WebhookEgress};

use super::process::Process;
use super::receiver::{Manner, Receiver};
use super::{HERE, Hooked, until};
use crate::gateway::served::{HttpAnswer, Served};
use crate::runner::world::{World, given_an_agent, say};

async fn a_world() -> World {
    given_an_agent().whose_model_says(json!([say("Done.")])).ready().await
}

impl Hooked {
    async fn patch(&self, endpoint: &str, body: serde_json::Value) -> HttpAnswer {
        let path = format!("/v1/webhook-endpoints/{endpoint}");
        HttpAnswer::of(self.served.request(Method::PATCH, &path).json(&body).send().await.unwrap()).await
    }

    async fn delete(&self, endpoint: &str) -> HttpAnswer {
        let path = format!("/v1/webhook-endpoints/{endpoint}");
        HttpAnswer::of(self.served.request(Method::DELETE, &path).send().await.unwrap()).await
    }

    async fn test(&self, endpoint: &str) -> HttpAnswer {
        self.served.post(&format!("/v1/webhook-endpoints/{endpoint}/test"), json!({})).await
    }
}

#[tokio::test]
async fn an_endpoint_shows_its_secret_once_and_can_be_deleted() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::open().await;
    let new = json!({"url": receiver.url(), "events": ["execution.failed"], "description": "the ledger"});
    let created = hooked.served.post("/v1/webhook-endpoints", new).await;
    assert_eq!(created.status, 201, "{created:?}");
    let secret = created.text("secret").to_owned();
    assert!(secret.starts_with("whsec_"), "{created:?}");
    assert_eq!(created.header("cache-control"), "no-store");
    receiver.learn(&secret);
    let id = created.text("id").to_owned();

    let read = hooked.served.get(created.header("location")).await;
    let mut shown = created.body.clone();
    shown.as_object_mut().unwrap().remove("secret");
    assert_eq!(read.body, shown);
    assert_eq!(hooked.served.get("/v1/webhook-endpoints").await.body["data"], json!([shown]));
    let sent = hooked.test(&id).await;
    assert_eq!((sent.status.as_u16(), sent.text("type")), (202, "webhook.test"));
    let arrived = receiver.receives(1).await.remove(0);
    assert_eq!((arrived.id.as_str(), arrived.kind().as_str()), (sent.text("id"), "webhook.test"));
    assert_eq!(arrived.body["data"], json!({"endpoint_id": id}));
    let delivery = hooked.delivery(&id, |delivery| delivery["status"] == "delivered").await;
    assert_eq!((&delivery["attempts"][0]["status"], &delivery["body"]), (&json!(204), &arrived.body));
    assert!(
        !hooked.served.get(&format!("/v1/webhook-endpoints/{id}/deliveries")).await.body.to_string().contains(&secret)
    );

    assert_eq!(hooked.delete(&id).await.status, 204);
    assert_eq!(hooked.endpoint(&id).await.problem(), "not_found");
    assert_eq!(hooked.served.get(&format!("/v1/webhook-endpoints/{id}/deliveries")).await.problem(), "not_found");
    assert_eq!(hooked.delete(&id).await.problem(), "not_found");
}

#[tokio::test]
async fn endpoints_are_listed_in_pages_oldest_first() {
    let hooked = Hooked::quiet(a_world().await, HERE).await;
    let receiver = Receiver::open().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(hooked.add(&receiver, &[]).await);
    }
    let first = hooked.served.get("/v1/webhook-endpoints?limit=2").await;
    assert_eq!((first.body["data"].as_array().unwrap().len(), &first.body["has_more"]), (2, &json!(true)));
    assert_eq!(hooked.served.get("/v1/webhook-endpoints?after=hook_of_unknown").await.problem(), "validation");
    let rest = hooked.served.get(&format!("/v1/webhook-endpoints?after={}", first.text("last_id"))).await;
    assert_eq!((&rest.body["data"][0]["id"], &rest.body["has_more"]), (&json!(ids[2]), &json!(false)));
}

#[tokio::test]
async fn an_invalid_endpoint_is_refused_with_a_pointer() {
    let hooked = Hooked::quiet(a_world().await, WebhookEgress::default()).await;
    for (body, pointer) in [
        (json!({"url": "http://example.com"}), "/url"),
        (json!({"url": "https://10.0.0.1/hooks"}), "/url"),
        (json!({"url": "https://169.254.169.254/"}), "/url"),
        (json!({"url": "https://user:pass@example.com/"}), "/url"),
        (json!({"url": "https://example.com", "secret": "whsec_c2hvcnQ="}), "/secret"),
        (json!({"url": "https://example.com", "events": ["run.begun"]}), "/events/0"),
        (json!({"url": "https://example.com", "events": ["webhook.test"]}), "/events/0"),
        (json!({"url": "https://example.com", "description": "x".repeat(501)}), "/description"),
        (json!({"url": "https://example.com", "colour": "red"}), "/colour"),
    ] {
        let refused = hooked.served.post("/v1/webhook-endpoints", body.clone()).await;
        let code = if ["/events/0", "/colour"].contains(&pointer) { "invalid_request" } else { "validation" };
        assert_eq!(refused.problem(), code, "{body}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{body}");
    }
    assert_eq!(hooked.served.get("/v1/webhook-endpoints").await.body["data"], json!([]));
}

#[tokio::test]
async fn both_secrets_sign_for_a_day_after_a_rotation() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::open().await;
    let id = hooked.add(&receiver, &[]).await;
    let rotated = hooked.served.post(&format!("/v1/webhook-endpoints/{id}/rotate"), json!({})).await;
    assert_eq!((rotated.status.as_u16(), rotated.header("cache-control")), (200, "no-store"));
    assert!(rotated.body["previous_secret_until"].is_string());

    hooked.test(&id).await;
    let both = receiver.receives(1).await.remove(0);
    assert_eq!(both.signature.split(' ').count(), 2);
    receiver.trust_only(rotated.text("secret"));
    hooked.test(&id).await;
    receiver.receives(2).await;
    hooked.clock.by(24 * 60 * 60);
    hooked.test(&id).await;
    let alone = receiver.receives(3).await.remove(2);
    assert_eq!(alone.signature.split(' ').count(), 1);
    assert_eq!(receiver.received().len(), 3, "each is signed with the new secret");
}

#[tokio::test]
async fn two_rotations_in_a_day_keep_every_secret_signing() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::open().await;
    let id = hooked.add(&receiver, &[]).await;
    for _ in 0..2 {
        // The response is lost, and with it the new secret.
        hooked.served.post(&format!("/v1/webhook-endpoints/{id}/rotate"), json!({})).await;
    }
    hooked.test(&id).await;
    let received = receiver.receives(1).await.remove(0);
    assert_eq!(received.signature.split(' ').count(), 3, "the receiver knows one of them");
}

#[tokio::test]
async fn an_enabled_endpoint_receives_what_waited_while_disabled() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::that_answers([Manner::Status(500), Manner::Status(204)]).await;
    let id = hooked.add(&receiver, &["execution.completed"]).await;
    let waiting = hooked.served.run(json!({"input": "Hello"})).await;
    receiver.receives(1).await;
    hooked.delivery(&id, |delivery| delivery["attempts"][0]["status"] == 500).await;

    let off = hooked.patch(&id, json!({"enabled": false})).await;

    assert_eq!((&off.body["enabled"], &off.body["disabled"]["reason"]), (&json!(false), &json!("local disabled it")));
    hooked.clock.by(60);
    hooked.served.run(json!({"input": "While it is off"})).await;
    let store = hooked.served.world.webhooks();
    until(async || store.unannounced(1).await.unwrap().is_empty().then_some(())).await;
    assert_eq!(hooked.test(&id).await.problem(), "conflict");
    let on = hooked.patch(&id, json!({"enabled": true, "events": [], "description": "new"})).await;
    assert_eq!((&on.body["enabled"], &on.body["description"]), (&json!(true), &json!("new")));
    let told = receiver.receives(2).await;
    assert_eq!(told[1].body["data"]["run_id"], json!(waiting));
    assert_eq!(hooked.deliveries(&id).await.len(), 1, "events of the meantime are not sent");
    assert_eq!(hooked.patch(&id, json!({"url": "ftp://x"})).await.body["errors"][0]["pointer"], "/url");
}

#[tokio::test]
async fn a_redelivery_has_the_same_id() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::open().await;
    let id = hooked.add(&receiver, &["execution.completed"]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    let first = receiver.receives(1).await.remove(0);
    hooked.delivery(&id, |delivery| delivery["status"] == "delivered").await;
    let path = |delivery: &str| format!("/v1/webhook-endpoints/{id}/deliveries/{delivery}/redeliver");

    assert_eq!(hooked.served.post(&path(&first.id), json!({})).await.status, 202);

    let again = receiver.receives(2).await.remove(1);
    assert_eq!((again.id, again.text), (first.id, first.text));
    hooked.delivery(&id, |delivery| delivery["attempts"].as_array().unwrap().len() == 2).await;
    assert_eq!(hooked.served.post(&path("msg_unknown"), json!({})).await.problem(), "not_found");
}

#[tokio::test]
async fn endpoints_of_another_tenant_are_not_found() {
    let hooked = Hooked::with(a_world().await).await;
    let receiver = Receiver::open().await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.test(&id).await;
    let message = receiver.receives(1).await.remove(0).id;

    let gateway = hooked.of_tenant("brim");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1/webhook-endpoints", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, gateway.router()).await.unwrap() });
    let client = reqwest::Client::new();
    for (method, path) in [
        (Method::GET, format!("/{id}")),
        (Method::PATCH, format!("/{id}")),
        (Method::DELETE, format!("/{id}")),
        (Method::POST, format!("/{id}/test")),
        (Method::POST, format!("/{id}/rotate")),
        (Method::GET, format!("/{id}/deliveries")),
        (Method::POST, format!("/{id}/deliveries/{message}/redeliver")),
    ] {
        let answer = HttpAnswer::of(client.request(method, format!("{base}{path}")).send().await.unwrap()).await;
        assert_eq!(answer.problem(), "not_found", "{path}");
    }
    let listed = HttpAnswer::of(client.get(&base).send().await.unwrap()).await;
    assert_eq!(listed.body["data"], json!([]));
    serving.abort();
}

#[tokio::test]
async fn without_the_scope_and_without_a_store_there_are_no_webhooks() {
    let caller = Caller {
        scopes: Scope::ALL.into_iter().filter(|scope| *scope != Scope::Webhooks).collect(),
        ..Caller::local()
    };
    let served = Served::with(a_world().await, |builder| builder.anonymous(caller)).await;
    assert_eq!(served.get("/v1/webhook-endpoints").await.problem(), "forbidden");
    let served = Served::to_all(a_world().await).await;
    assert_eq!(served.get("/v1/webhook-endpoints").await.problem(), "unavailable");
}

#[tokio::test]
async fn configured_endpoints_go_anywhere_and_the_api_cannot_change_them() {
    let hooked = Hooked::within(a_world().await, WebhookEgress::default()).await;
    let receiver = Receiver::open().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let configured = |url: String, secret: &str| ConfiguredWebhook {
        tenant: Default::default(),
        url,
        secret: secret.into(),
        events: [].into(),
    };
    hooked.outbound.configure(&[configured(receiver.url(), secret)]).await.unwrap();
    receiver.learn(secret);
    hooked.served.run(json!({"input": "Hello"})).await;
    receiver.receives(1).await;

    let listed = hooked.served.get("/v1/webhook-endpoints").await;
    let id = listed.body["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(listed.body["data"][0]["configured"], true);
    assert_eq!(hooked.patch(&id, json!({"enabled": false})).await.problem(), "conflict");
    assert_eq!(hooked.delete(&id).await.problem(), "conflict");
    let error =
        hooked.outbound.configure(&[configured("https://example.com".into(), "hunter2hunter2")]).await.unwrap_err();
    assert!(error.starts_with("number 1: ") && !error.contains("hunter2"), "{error}");
    hooked.outbound.configure(&[]).await.unwrap();
    assert_eq!(hooked.served.get("/v1/webhook-endpoints").await.body["data"], json!([]));
}

#[tokio::test]
async fn a_url_has_one_endpoint_however_often_it_is_created() {
    let hooked = Hooked::quiet(a_world().await, HERE).await;
    let new = json!({"url": "https://example.com/hooks", "events": ["execution.failed"]});
    let create = async |body: &serde_json::Value| hooked.served.post("/v1/webhook-endpoints", body.clone()).await;
    let (first, second) = tokio::join!(create(&new), create(&new));
    let (made, there) = if first.status == 201 { (first, second) } else { (second, first) };

    assert_eq!((made.status.as_u16(), there.status.as_u16()), (201, 200), "{there:?}");
    assert_eq!((there.text("id"), there.header("location")), (made.text("id"), made.header("location")));
    assert!(there.body.get("secret").is_none(), "{there:?}");
    for other in
        [json!({"url": new["url"]}), json!({"url": new["url"], "events": ["execution.failed"], "description": "x"})]
    {
        let refused = create(&other).await;
        assert_eq!((refused.problem(), &refused.body["retryable"]), ("conflict", &json!(false)), "{refused:?}");
    }
    let another = create(&json!({"url": "https://example.com/others"})).await;
    let moved = hooked.patch(another.text("id"), json!({"url": new["url"]})).await;
    assert_eq!(moved.problem(), "conflict", "{moved:?}");
    assert_eq!(hooked.served.get("/v1/webhook-endpoints").await.body["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn two_processes_create_one_endpoint_per_url_within_the_limit() {
    let directory = tempfile::TempDir::new().unwrap();
    let (one, other) = (Process::on(directory.path()).await, Process::on(directory.path()).await);
    let (one, other) = (one.serve().await, other.serve().await);
    let client = reqwest::Client::new();
    let create = async |process: &str, url: String| {
        let path = format!("{process}/v1/webhook-endpoints");
        client.post(path).json(&json!({"url": url})).send().await.unwrap().status().as_u16()
    };
    let both = async |url: &str, another: &str| {
        let (first, second) = tokio::join!(create(&one, url.to_owned()), create(&other, another.to_owned()));
        [first.min(second), first.max(second)]
    };
    for number in 0..99 {
        let url = format!("https://example.com/{number}");
        assert_eq!(both(&url, &url).await, [200, 201], "{url}");
    }
    assert_eq!(both("https://example.com/a", "https://example.com/b").await, [201, 409], "one more than the limit");
}

#[tokio::test]
async fn exceeding_the_endpoint_limit_is_not_retryable() {
    let hooked = Hooked::quiet(a_world().await, HERE).await;
    for number in 0..100 {
        let url = format!("https://example.com/{number}");
        assert_eq!(hooked.served.post("/v1/webhook-endpoints", json!({"url": url})).await.status, 201);
    }
    let refused = hooked.served.post("/v1/webhook-endpoints", json!({"url": "https://example.com/more"})).await;
    assert_eq!((refused.problem(), &refused.body["retryable"]), ("conflict", &json!(false)), "{refused:?}");
}
