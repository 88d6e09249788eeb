//! Webhook of one run: it receives the messages of this run, and goes away with it.

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::gateway::Gateway;
use toolgate::ports::RunFilter;
use toolgate::service::{Caller, Scope, Service, WebhookEgress};

use super::process::{Process, SECRET};
use super::receiver::{Manner, Receiver};
use super::{HERE, Hooked, until};
use crate::gateway::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, say};

async fn hooked(kept: Kept) -> Hooked {
    Hooked::with(given_an_agent().whose_model_says(json!([say("Done.")])).kept(kept).await).await
}

async fn in_memory() -> Hooked {
    hooked(Kept::InMemory).await
}

/// A receiver that knows the secret.
async fn receiver() -> Receiver {
    let receiver = Receiver::open().await;
    receiver.learn(SECRET);
    receiver
}

fn hook(receiver: &Receiver) -> Value {
    json!({"url": receiver.url(), "secret": SECRET})
}

impl Hooked {
    /// The webhooks of a run.
    async fn of_run(&self, run: &str) -> Vec<Value> {
        let listed = self.served.get(&format!("/v1/webhook-endpoints?run_id={run}")).await;
        listed.body["data"].as_array().unwrap_or_else(|| panic!("{listed:?}")).clone()
    }
}

async fn a_webhook_receives_the_messages_of_its_run_alone(kept: Kept) {
    let hooked = hooked(kept).await;
    let (own, all) = (receiver().await, Receiver::open().await);
    hooked.add(&all, &[]).await;

    let run = hooked.served.run(json!({"input": "Hello", "webhook": hook(&own)})).await;
    let other = hooked.served.run(json!({"input": "Hello again"})).await;

    let of = |told: &[super::receiver::Received]| {
        let runs = told.iter().map(|told| told.body["data"]["run_id"].as_str().unwrap().to_owned());
        runs.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(of(&all.receives(2).await), [run.clone(), other].into());
    assert_eq!(of(&own.receives(1).await), [run.clone()].into());
    let listed = hooked.of_run(&run).await;
    assert_eq!((listed.len(), &listed[0]["run_id"], &listed[0]["url"]), (1, &json!(run), &json!(own.url())));
    let id = listed[0]["id"].as_str().unwrap();
    hooked.delivery(id, |delivery| delivery["status"] == "delivered").await;
    until(async || hooked.has_nothing_to_send().await.then_some(())).await;
    assert_eq!(own.received().len(), 1);
    let of_tenant = hooked.served.get("/v1/webhook-endpoints").await;
    assert_eq!(of_tenant.body["data"].as_array().unwrap().len(), 1, "only the tenant's own: {of_tenant:?}");

    assert_eq!(
        HttpAnswer::of(hooked.served.request(Method::DELETE, &format!("/v1/runs/{run}")).send().await.unwrap())
            .await
            .status,
        204
    );
    assert_eq!(hooked.endpoint(id).await.problem(), "not_found");
    assert_eq!(hooked.of_run(&run).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_webhook_receives_the_messages_of_its_run_alone_from_memory() {
    a_webhook_receives_the_messages_of_its_run_alone(Kept::InMemory).await;
}

#[tokio::test]
async fn a_webhook_receives_the_messages_of_its_run_alone_from_a_file() {
    a_webhook_receives_the_messages_of_its_run_alone(Kept::InAFile).await;
}

#[tokio::test]
async fn forks_retries_and_runs_of_sessions_have_webhooks_of_their_own() {
    let hooked = in_memory().await;
    let receiver = receiver().await;
    let first = hooked.served.post("/v1/runs", json!({"input": "Hello", "session_id": "chat"})).await;
    let path = |verb: &str| format!("/v1/runs/{}/{verb}", first.text("id"));
    let retried = hooked.served.post(&path("retry"), json!({"webhook": hook(&receiver)})).await;
    let forked = hooked.served.post(&path("fork"), json!({"webhook": hook(&receiver)})).await;
    let next = hooked.served.post("/v1/sessions/chat/runs", json!({"input": "And?", "webhook": hook(&receiver)})).await;

    let mut told: Vec<String> = receiver
        .receives(3)
        .await
        .iter()
        .map(|told| told.body["data"]["run_id"].as_str().unwrap().to_owned())
        .collect();
    told.sort();
    let mut runs: Vec<String> = [&retried, &forked, &next].map(|run| run.text("id").to_owned()).into();
    runs.sort();
    assert_eq!(told, runs, "the run that was copied has none");
}

#[tokio::test]
async fn a_webhook_sends_only_the_chosen_events() {
    let hooked = in_memory().await;
    let receiver = receiver().await;
    let webhook = json!({"url": receiver.url(), "secret": SECRET, "events": ["execution.failed"]});
    let run = hooked.served.run(json!({"input": "Hello", "webhook": webhook})).await;
    until(async || hooked.has_nothing_to_send().await.then_some(())).await;
    assert_eq!(hooked.of_run(&run).await[0]["events"], json!(["execution.failed"]));
    assert_eq!(receiver.received().len(), 0);
}

#[tokio::test]
async fn a_webhook_that_answers_410_receives_nothing_more_of_its_run() {
    let hooked = in_memory().await;
    let gone = Receiver::that_answers([Manner::Status(410)]).await;
    gone.learn(SECRET);
    let run = hooked.served.run(json!({"input": "Hello", "webhook": hook(&gone)})).await;
    let off = until(async || hooked.of_run(&run).await.pop().filter(|endpoint| endpoint["enabled"] == false)).await;
    assert_eq!(off["disabled"]["reason"], "it answered 410, which means gone for good");
    let id = off["id"].as_str().unwrap();
    assert_eq!(hooked.served.post(&format!("/v1/webhook-endpoints/{id}/test"), json!({})).await.problem(), "conflict");
    assert_eq!(gone.received().len(), 1);
}

#[tokio::test]
async fn an_invalid_webhook_is_refused_with_a_pointer_and_starts_no_run() {
    let hooked =
        Hooked::quiet(given_an_agent().whose_model_says(json!([say("Done.")])).ready().await, WebhookEgress::default())
            .await;
    let at = |url: &str| json!({"url": url, "secret": SECRET});
    for (webhook, pointer) in [
        (at("http://example.com"), "/webhook/url"),
        (at("https://10.0.0.1/hooks"), "/webhook/url"),
        (at("https://127.0.0.1/hooks"), "/webhook/url"),
        (at("https://[::ffff:169.254.169.254]/"), "/webhook/url"),
        (at("https://2852039166/"), "/webhook/url"),
        (at("https://user:pass@example.com/"), "/webhook/url"),
        (at("file:///etc/passwd"), "/webhook/url"),
        (at(""), "/webhook/url"),
        (json!({"url": "https://example.com", "secret": "whsec_c2hvcnQ="}), "/webhook/secret"),
        (json!({"url": "https://example.com", "secret": ""}), "/webhook/secret"),
        (json!({"url": "https://example.com"}), "/webhook"),
        (json!({"url": "https://example.com", "secret": SECRET, "events": ["webhook.test"]}), "/webhook/events/0"),
        (json!({"url": "https://example.com", "secret": SECRET, "colour": "red"}), "/webhook/colour"),
        (json!("https://example.com"), "/webhook"),
        (json!([]), "/webhook"),
    ] {
        let refused = hooked.served.post("/v1/runs", json!({"input": "Hello", "webhook": webhook})).await;
        assert!(["validation", "invalid_request"].contains(&refused.problem()), "{refused:?}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{webhook}: {refused:?}");
        assert!(!refused.body.to_string().contains("whsec_c2hvcnQ="), "{refused:?}");
    }
    assert_eq!(hooked.served.world.runner.list(&RunFilter::default()).await.unwrap(), []);
}

#[tokio::test]
async fn a_webhook_needs_its_scope_and_a_server_that_sends_webhooks() {
    let hooked = in_memory().await;
    let body = json!({"input": "Hello", "webhook": {"url": "https://example.com/hooks", "secret": SECRET}});
    let scopes = [Scope::RunsRead, Scope::RunsWrite].into_iter().collect();
    let service = Service::new(hooked.served.world.runner.clone()).webhooks(hooked.outbound.clone());
    let refused =
        posted(Gateway::builder(service).anonymous(Caller { scopes, ..Caller::local() }).build(), &body).await;
    assert_eq!((refused.problem(), &refused.body["reason"]), ("forbidden", &json!("scope_missing")), "{refused:?}");
    assert!(refused.text("detail").contains("`webhooks`"), "{refused:?}");
    let without = Gateway::builder(hooked.served.world.runner.clone()).anonymous(Caller::local()).build();
    assert_eq!(posted(without, &body).await.problem(), "unavailable");
    assert_eq!(hooked.served.world.runner.list(&RunFilter::default()).await.unwrap(), []);
}

/// The response to a request that starts a run.
async fn posted(gateway: Gateway, body: &Value) -> HttpAnswer {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/runs", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, gateway.router()).await.unwrap() });
    let answer = HttpAnswer::of(reqwest::Client::new().post(url).json(body).send().await.unwrap()).await;
    serving.abort();
    answer
}

#[tokio::test]
async fn a_run_that_is_refused_leaves_no_webhook() {
    let hooked = in_memory().await;
    let webhook = json!({"url": "https://example.com/hooks", "secret": SECRET});
    let refused = hooked.served.post("/v1/runs", json!({"input": "x", "agent": "unknown", "webhook": webhook})).await;
    assert_eq!(refused.problem(), "validation");
    let endpoints = hooked.served.world.webhooks().endpoints(&Default::default()).await.unwrap();
    assert_eq!(endpoints, []);
}

#[tokio::test]
async fn webhooks_of_runs_do_not_count_against_the_endpoints_of_a_tenant() {
    let hooked = Hooked::quiet(given_an_agent().whose_model_says(json!([say("Done.")])).ready().await, HERE).await;
    let webhook = json!({"url": "https://example.com/hooks", "secret": SECRET});
    for _ in 0..101 {
        hooked.served.run(json!({"input": "Hello", "webhook": webhook})).await;
    }
    let created = hooked.served.post("/v1/webhook-endpoints", json!({"url": webhook["url"]})).await;
    assert_eq!(created.status, 201, "{created:?}");
}

#[tokio::test]
async fn webhooks_of_another_tenant_are_not_found() {
    let hooked = in_memory().await;
    let run = hooked.served.run(json!({"input": "Hello", "webhook": hook(&receiver().await)})).await;
    let gateway = hooked.of_tenant("brim");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/webhook-endpoints?run_id={run}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, gateway.router()).await.unwrap() });
    assert_eq!(HttpAnswer::of(reqwest::get(url).await.unwrap()).await.body["data"], json!([]));
    serving.abort();
}

#[tokio::test]
async fn a_repeated_start_makes_no_second_webhook() {
    let hooked = Hooked::quiet(given_an_agent().whose_model_says(json!([say("Done.")])).ready().await, HERE).await;
    let store = hooked.served.world.webhooks();
    let service = Service::new(hooked.served.world.runner.clone()).webhooks(hooked.outbound.clone());
    let replies = std::sync::Arc::new(toolgate::stores::MemoryStore::new());
    let served =
        Served::over(service, hooked.served.world, |builder| builder.anonymous(Caller::local()).idempotency(replies))
            .await;
    let webhook = json!({"url": "https://example.com/hooks", "secret": SECRET});
    let start = async || {
        let request = served.request(Method::POST, "/v1/runs").header("idempotency-key", "once");
        HttpAnswer::of(request.json(&json!({"input": "Hello", "webhook": webhook})).send().await.unwrap()).await
    };
    let (first, repeated) = (start().await, start().await);
    assert_eq!(first.text("id"), repeated.text("id"));
    assert_eq!(store.endpoints(&Default::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_secret_of_a_webhook_is_in_no_response_event_or_journal() {
    let hooked = in_memory().await;
    let receiver = receiver().await;
    let created = hooked.served.post("/v1/runs", json!({"input": "Hello", "webhook": hook(&receiver)})).await;
    receiver.receives(1).await;
    let run = created.text("id").to_owned();
    let id = hooked.of_run(&run).await[0]["id"].as_str().unwrap().to_owned();
    let secret = SECRET.strip_prefix("whsec_").unwrap();
    assert!(!created.body.to_string().contains(secret), "{created:?}");
    for path in [
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/messages"),
        format!("/v1/runs/{run}/events"),
        "/v1/events?limit=100".to_owned(),
        format!("/v1/webhook-endpoints?run_id={run}"),
        format!("/v1/webhook-endpoints/{id}"),
        format!("/v1/webhook-endpoints/{id}/deliveries"),
    ] {
        let request = hooked.served.request(Method::GET, &path).header("accept", "application/json");
        let read = HttpAnswer::of(request.send().await.unwrap()).await;
        assert_eq!(read.status, 200, "{path}: {read:?}");
        assert!(!read.body.to_string().contains(secret), "{path}");
    }
    let journal = hooked.served.world.runner.journal(&run.as_str().into()).await.unwrap();
    let journal = serde_json::to_string(&journal).unwrap();
    assert!(!journal.contains(secret) && !journal.contains(&receiver.url()), "{journal}");
}

#[tokio::test]
async fn another_process_delivers_the_messages_of_a_run_that_was_started_here() {
    let directory = tempfile::TempDir::new().unwrap();
    let (one, other) = (Process::on(directory.path()).await, Process::on(directory.path()).await);
    let receiver = receiver().await;
    let url = format!("{}/v1/runs", one.serve().await);
    let body = json!({"input": "Hello", "webhook": hook(&receiver)});
    let created = HttpAnswer::of(reqwest::Client::new().post(url).json(&body).send().await.unwrap()).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let dispatching = tokio::spawn(other.dispatcher().run(stop.clone()));
    let told = receiver.receives(1).await.remove(0);
    assert_eq!(told.body["data"]["run_id"], created.body["id"]);
    stop.cancel();
    dispatching.await.unwrap();
}

#[tokio::test]
async fn the_webhook_of_an_ended_run_is_deleted_after_its_deliveries() {
    let hooked = in_memory().await;
    let receiver = receiver().await;
    let run = hooked.served.run(json!({"input": "Hello", "webhook": hook(&receiver)})).await;
    receiver.receives(1).await;
    hooked.clock.by(31 * 24 * 60 * 60);
    until(async || hooked.of_run(&run).await.is_empty().then_some(())).await;
    assert_eq!(hooked.served.get(&format!("/v1/runs/{run}")).await.status, 200, "the run stays");
}
