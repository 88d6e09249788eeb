//! Daily quotas over HTTP: which starts are refused, with what, and what a caller sees of its quotas.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use toolgate::gateway::Gateway;
use toolgate::ports::{Clock, Quota, Quotas, UsageCounters as _, WebhookEndpoints as _};
use toolgate::runner::AgentRunner;
use toolgate::service::{Service, WebhookConfig};
use toolgate::stores::{Durability, SqliteStore};

use super::principals::Badges;
use super::served::HttpAnswer;
use crate::runner::world::given_an_agent;

/// A clock that stands still until a test moves it.
struct Standing(Mutex<Timestamp>);

#[async_trait]
impl Clock for Standing {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A process that serves a file.
struct Process {
    base: String,
    store: Arc<SqliteStore>,
    client: reqwest::Client,
    _serving: JoinSet<()>,
}

/// Processes on one file, whose clocks agree.
struct Machine {
    directory: TempDir,
    clock: Arc<Standing>,
    quotas: Quotas,
    /// What the model says.
    turns: Value,
}

const A: &str = "key:a acme all";
const B: &str = "key:b acme all";
const OTHER: &str = "key:a brim all";

fn quota(limits: Value) -> Quota {
    let count = |name: &str| limits[name].as_u64();
    Quota {
        runs: count("runs"),
        tokens: count("tokens"),
        cost_usd: limits["cost_usd"].as_str().map(|text| text.parse().unwrap()),
    }
}

impl Machine {
    /// Shortly before midnight, with these quotas of every tenant and of every caller.
    fn with(tenants: Option<Value>, callers: Option<Value>) -> Self {
        let every = |limits: Option<Value>| limits.map(|limits| ("*".to_owned(), quota(limits))).into_iter().collect();
        let clock = Arc::new(Standing(Mutex::new("2026-11-29T23:00:00Z".parse().unwrap())));
        let quotas = Quotas { tenants: every(tenants), callers: every(callers) };
        Self { directory: TempDir::new().unwrap(), clock, quotas, turns: json!([said("Done.")]) }
    }

    fn is_at(&self, time: &str) {
        *self.clock.0.lock().unwrap() = time.parse().unwrap();
    }

    async fn process(&self) -> Process {
        Process::on(self).await
    }
}

/// A reply that uses a hundred tokens.
fn said(text: &str) -> Value {
    json!({"say": text, "usage": {"input_tokens": 60, "output_tokens": 40, "cost_usd": "0.25"}})
}

impl Process {
    async fn on(machine: &Machine) -> Self {
        let path = machine.directory.path().join("runs.db");
        let store = Arc::new(SqliteStore::open_with_durability(&path, Durability::ProcessCrash).await.unwrap());
        store.set_quotas(machine.quotas.clone());
        let given = given_an_agent().with_tools("files", &["read"]).whose_model_says(machine.turns.clone());
        let builder = AgentRunner::builder().store(store.clone()).clock(machine.clock.clone()).servers(given.servers());
        let runner = builder.agent(given.agent()).build().unwrap();
        let webhooks = WebhookConfig::new(store.clone());
        let service = Service::new(runner).usage(store.clone()).webhooks(webhooks);
        let gateway = Gateway::builder(service).authenticator(Arc::new(Badges)).idempotency(store.clone()).build();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, gateway.router()).await.unwrap() });
        Self { base, store, client: reqwest::Client::new(), _serving: serving }
    }

    fn request(&self, badge: &str, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).header("x-badge", badge)
    }

    async fn get(&self, badge: &str, path: &str) -> HttpAnswer {
        HttpAnswer::of(self.request(badge, Method::GET, path).send().await.unwrap()).await
    }

    async fn post(&self, badge: &str, path: &str, body: Value) -> HttpAnswer {
        HttpAnswer::of(self.request(badge, Method::POST, path).json(&body).send().await.unwrap()).await
    }

    /// Starts a run, which has to succeed.
    async fn run(&self, badge: &str) -> String {
        let created = self.post(badge, "/v1/runs", json!({"input": "Hello"})).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.text("id").to_owned()
    }

    /// Starts a run, which has to be refused by a quota.
    async fn refused(&self, badge: &str) -> HttpAnswer {
        is_refused(self.post(badge, "/v1/runs", json!({"input": "Hello"})).await)
    }

    async fn quotas(&self, badge: &str) -> Value {
        self.get(badge, "/v1/me").await.body["quotas"].clone()
    }
}

fn is_refused(answer: HttpAnswer) -> HttpAnswer {
    assert_eq!((answer.status.as_u16(), answer.problem()), (429, "rate_limited"), "{answer:?}");
    assert_eq!(
        (&answer.body["reason"], &answer.body["retryable"]),
        (&json!("quota_exceeded"), &json!(true)),
        "{answer:?}"
    );
    answer
}

#[tokio::test]
async fn a_run_beyond_a_quota_waits_for_the_next_day() {
    let machine = Machine::with(Some(json!({"runs": 2})), None);
    let process = machine.process().await;
    process.run(A).await;
    process.run(A).await;
    machine.is_at("2026-11-29T23:59:58.500Z");

    let refused = process.refused(A).await;

    assert_eq!(refused.header("retry-after"), "2");
    assert_eq!(refused.header("ratelimit-policy"), r#""runs-per-day-of-tenant";q=2;w=86400"#);
    assert_eq!(refused.header("ratelimit"), r#""runs-per-day-of-tenant";r=0;t=2"#);
    assert!(refused.text("detail").contains("2 of 2") && refused.text("detail").contains("2026-11-30T00:00:00Z"));
    assert_eq!(process.get(A, "/v1/runs").await.body["data"].as_array().unwrap().len(), 2);
    let state = json!({"resets_at": "2026-11-30T00:00:00.000Z", "key": null,
        "tenant": {"runs": {"limit": 2, "used": 2, "remaining": 0}, "tokens": null, "cost_usd": null}});
    assert_eq!(process.quotas(A).await, state);
    machine.is_at("2026-11-30T00:00:00Z");
    assert_eq!(process.quotas(A).await["tenant"]["runs"]["used"], 0);
    process.run(A).await;
}

#[tokio::test]
async fn each_way_to_start_a_run_is_refused() {
    let machine = Machine::with(None, Some(json!({"runs": 1})));
    let process = machine.process().await;
    let begun = process.post(A, "/v1/runs", json!({"input": "Hello", "session_id": "chat"})).await;
    let run = begun.text("id");
    let webhook = json!({"url": "https://example.com/hooks", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"});
    for (path, body) in [
        ("/v1/runs".to_owned(), json!({"input": "Hello", "session_id": "another", "webhook": webhook})),
        ("/v1/sessions/chat/runs".to_owned(), json!({"input": "And?"})),
        ("/v1/sessions/chat/compact".to_owned(), json!({})),
        (format!("/v1/runs/{run}/fork"), json!({"webhook": webhook})),
        (format!("/v1/runs/{run}/retry"), json!({})),
        ("/v1/tools/mcp_files_read/call".to_owned(), json!({})),
    ] {
        is_refused(process.post(A, &path, body).await);
    }
    let streamed = process.request(A, Method::POST, "/v1/runs").header("accept", "text/event-stream");
    is_refused(HttpAnswer::of(streamed.json(&json!({"input": "Hello"})).send().await.unwrap()).await);
    assert_eq!(process.get(A, "/v1/sessions/another").await.problem(), "not_found");
    assert_eq!(process.store.endpoints(&Default::default()).await.unwrap(), [], "a refused run leaves no webhook");
    let chat = process.get(A, "/v1/sessions/chat").await;
    assert_eq!(chat.body["runs"], 1, "{chat:?}");
}

#[tokio::test]
async fn tokens_and_costs_forbid_the_next_run() {
    let machine = Machine::with(None, Some(json!({"tokens": 101, "cost_usd": "9"})));
    let process = machine.process().await;
    process.run(A).await;
    assert_eq!(process.quotas(A).await["key"]["tokens"], json!({"limit": 101, "used": 100, "remaining": 1}));
    process.run(A).await;
    let refused = process.refused(A).await;
    assert_eq!(refused.header("ratelimit-policy"), r#""tokens-per-day-of-key";q=101;w=86400"#);
    let key = process.quotas(A).await["key"].clone();
    assert_eq!(key["tokens"], json!({"limit": 101, "used": 200, "remaining": 0}));
    assert_eq!(key["cost_usd"], json!({"limit": "9", "used": "0.5", "remaining": "8.5"}));

    let machine = Machine::with(Some(json!({"cost_usd": "0.25"})), None);
    let process = machine.process().await;
    process.run(A).await;
    let refused = process.refused(A).await;
    assert!(refused.text("detail").contains("US dollars") && refused.headers.get("ratelimit").is_none(), "{refused:?}");
}

#[tokio::test]
async fn keys_and_tenants_are_counted_apart() {
    let machine = Machine::with(Some(json!({"runs": 3})), Some(json!({"runs": 2})));
    let process = machine.process().await;
    process.run(A).await;
    process.run(A).await;
    process.refused(A).await;
    process.run(B).await;
    let refused = process.refused(B).await;
    assert!(refused.text("detail").starts_with("the runs of this tenant"), "{refused:?}");
    let used = async |badge| {
        let quotas = process.quotas(badge).await;
        [quotas["key"]["runs"]["used"].clone(), quotas["tenant"]["runs"]["used"].clone()]
    };
    assert_eq!(used(A).await, [2, 3]);
    assert_eq!(used(B).await, [1, 3]);
    assert_eq!(used(OTHER).await, [0, 0], "the same name in another tenant");
    process.run(OTHER).await;
    assert_eq!(used(OTHER).await, [1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_start_no_more_runs_than_a_quota_allows() {
    let machine = Machine::with(Some(json!({"runs": 7})), None);
    let (one, other) = (machine.process().await, machine.process().await);
    let starts = (0..30).map(|number| {
        let process = if number % 2 == 0 { &one } else { &other };
        process.post(A, "/v1/runs", json!({"input": "Hello"}))
    });
    let answers = join_all(starts).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 7);
    for answer in answers.into_iter().filter(|answer| answer.status != 201) {
        is_refused(answer);
    }
    for process in [&one, &other] {
        assert_eq!(process.quotas(A).await["tenant"]["runs"], json!({"limit": 7, "used": 7, "remaining": 0}));
    }
}

#[tokio::test]
async fn a_deleted_run_gives_no_quota_back_and_a_restart_forgets_none() {
    let machine = Machine::with(Some(json!({"runs": 1})), None);
    let process = machine.process().await;
    let run = process.run(A).await;
    let deleted = process.request(A, Method::DELETE, &format!("/v1/runs/{run}")).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    process.refused(A).await;
    process.store.close().await;
    machine.process().await.refused(A).await;
}

#[tokio::test]
async fn a_repeated_request_counts_once_and_a_refused_one_can_be_repeated() {
    let machine = Machine::with(Some(json!({"runs": 1})), None);
    let process = machine.process().await;
    let start = async |key: &str| {
        let request = process.request(A, Method::POST, "/v1/runs").header("idempotency-key", key);
        HttpAnswer::of(request.json(&json!({"input": "Hello"})).send().await.unwrap()).await
    };
    let first = start("first").await;
    assert_eq!(start("first").await.text("id"), first.text("id"));
    is_refused(start("second").await);
    assert_eq!(process.quotas(A).await["tenant"]["runs"]["used"], 1);
    machine.is_at("2026-11-30T06:00:00Z");
    assert_eq!(start("second").await.status, 201);
}

#[tokio::test]
async fn a_run_over_midnight_counts_on_both_days() {
    let calls = json!({"calls": [{"name": "ext_confirm"}], "usage": {"input_tokens": 5, "output_tokens": 2}});
    let machine = Machine { turns: json!([calls, said("Done.")]), ..Machine::with(Some(json!({"tokens": 99})), None) };
    let process = machine.process().await;
    let body = json!({"input": "Hello", "external_tools": [{"name": "confirm"}]});
    let begun = process.post(A, "/v1/runs", body).await;
    assert_eq!(begun.text("status"), "pending", "{begun:?}");
    assert_eq!(process.quotas(A).await["tenant"]["tokens"]["used"], 7);

    machine.is_at("2026-11-30T00:00:01Z");
    let answer = json!({"call_id": begun.body["pending"][0]["call_id"], "type": "result", "output": "yes"});
    let path = format!("/v1/runs/{}/resume", begun.text("id"));
    // Another key continues the run, and the key that started it pays.
    let resumed = process.post(B, &path, json!({"answers": [answer]})).await;

    assert_eq!(resumed.text("status"), "completed", "{resumed:?}");
    assert_eq!(process.quotas(A).await["tenant"]["tokens"], json!({"limit": 99, "used": 100, "remaining": 0}));
    process.refused(B).await;
    machine.is_at("2026-11-29T23:30:00Z");
    assert_eq!(process.quotas(A).await["tenant"]["tokens"]["used"], 7);
}

#[tokio::test]
async fn the_copied_part_of_a_fork_does_not_count() {
    let machine = Machine::with(Some(json!({"tokens": 1000})), None);
    let process = machine.process().await;
    let run = process.run(A).await;
    let fork = process.post(A, &format!("/v1/runs/{run}/fork"), json!({})).await;
    assert_eq!(fork.status, 201, "{fork:?}");
    assert_eq!(process.quotas(A).await["tenant"]["tokens"]["used"], 200);
}

#[tokio::test]
async fn a_server_without_quotas_shows_none_and_counts_nothing() {
    let machine = Machine::with(None, None);
    let process = machine.process().await;
    process.run(A).await;
    assert_eq!(process.quotas(A).await, Value::Null);
    process
        .store
        .set_quotas(Quotas { tenants: [("acme".to_owned(), quota(json!({"runs": 1})))].into(), ..Quotas::default() });
    assert_eq!(process.quotas(A).await["tenant"]["runs"]["used"], 0);
    assert_eq!(process.quotas(OTHER).await, Value::Null, "no quota is for this tenant");
}

#[tokio::test]
async fn hostile_names_of_tenants_and_callers_have_counters_of_their_own() {
    let machine = Machine::with(Some(json!({"runs": 1})), Some(json!({"runs": 1})));
    let process = machine.process().await;
    for badge in ["* * all", "' acme' all", "%00 acme%27;-- all", "key:a key:a all"] {
        process.run(badge).await;
        process.refused(badge).await;
    }
}
