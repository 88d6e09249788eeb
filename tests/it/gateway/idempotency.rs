//! Idempotent requests: a repeat is not handled again.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::id::Tenant;
use toolgate::gateway::Gateway;
use toolgate::ports::{
    AccessKeys, IdempotencyRecord, IdempotencyStore, IdempotentRequest, RequestState, RunFilter, StoreError,
    StoredResponse,
};
use toolgate::service::{Caller, Scopes};
use toolgate::stores::MemoryStore;

use super::served::{HttpAnswer, Served};
use super::streamed::{Frame, Stream};
use crate::fakes::Fault;
use crate::runner::world::{Given, Kept, given_an_agent, say};

/// A gateway that stores responses, and its store.
struct Remembering {
    served: Served,
    store: Arc<Forgetful>,
}

/// A store that can be made to lose outcomes, as if the process had ended before.
#[derive(Default)]
struct Forgetful {
    inner: MemoryStore,
    /// The last request that was recorded.
    asked: std::sync::Mutex<Option<IdempotentRequest>>,
}

#[async_trait::async_trait]
impl IdempotencyStore for Forgetful {
    async fn begin(&self, asked: &IdempotentRequest, now: Timestamp) -> Result<Option<IdempotencyRecord>, StoreError> {
        let begun = self.inner.begin(asked, now).await?;
        if begun.is_none() {
            *self.asked.lock().unwrap() = Some(asked.clone());
        }
        Ok(begun)
    }

    async fn prolong(&self, asked: &IdempotentRequest, until: Timestamp) -> Result<(), StoreError> {
        self.inner.prolong(asked, until).await
    }

    async fn take_over(&self, asked: &IdempotentRequest, now: Timestamp) -> Result<bool, StoreError> {
        self.inner.take_over(asked, now).await
    }

    async fn settle(&self, asked: &IdempotentRequest, state: &RequestState) -> Result<(), StoreError> {
        self.inner.settle(asked, state).await
    }

    async fn forget(&self, asked: &IdempotentRequest) -> Result<(), StoreError> {
        self.inner.forget(asked).await
    }
}

impl Forgetful {
    fn asked(&self) -> IdempotentRequest {
        self.asked.lock().unwrap().clone().expect("a request was recorded")
    }

    /// Sets the state of the last request.
    async fn becomes(&self, state: RequestState) {
        self.inner.settle(&self.asked(), &state).await.unwrap();
    }
}

/// A request whose process has ended.
fn interrupted() -> RequestState {
    RequestState::UnderWay { held_until: Timestamp::now() - jiff::SignedDuration::from_secs(1) }
}

async fn remembering(given: Given) -> Remembering {
    let world = given.kept(Kept::InMemory).await;
    let store = Arc::new(Forgetful::default());
    let keys: Arc<dyn AccessKeys> = Arc::new(MemoryStore::new());
    let served =
        Served::with(world, |builder| builder.anonymous(Caller::local()).idempotency(store.clone()).keys(keys)).await;
    Remembering { served, store }
}

fn given_two_answers() -> Given {
    given_an_agent().whose_model_says(json!([say("Once."), say("Twice.")]))
}

impl Remembering {
    async fn post(&self, path: &str, key: &str, body: &Value) -> HttpAnswer {
        let request = self.served.request(Method::POST, path).header("idempotency-key", key).json(body);
        HttpAnswer::of(request.send().await.unwrap()).await
    }

    async fn runs(&self) -> usize {
        self.served.world.runner.list(&RunFilter::default()).await.unwrap().len()
    }
}

#[tokio::test]
async fn a_repeated_request_receives_the_stored_response() {
    let remembering = remembering(given_two_answers()).await;
    let body = json!({"input": "Hello"});

    let first = remembering.post("/v1/runs", "k-1", &body).await;
    let again = remembering.post("/v1/runs", "k-1", &body).await;

    assert_eq!((first.status.as_u16(), first.headers.contains_key("idempotent-replayed")), (201, false));
    assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (201, "true"));
    assert_eq!((&again.body, again.header("location")), (&first.body, first.header("location")));
    assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
    assert_eq!(remembering.runs().await, 1);
    let fresh = remembering.post("/v1/runs", "k-2", &body).await;
    assert_ne!(fresh.body["id"], first.body["id"]);
    assert_eq!(remembering.runs().await, 2);
}

#[tokio::test]
async fn a_repeated_compaction_finds_its_run() {
    let remembering = remembering(given_two_answers()).await;
    let session = json!({"input": "Hello", "session_id": "chat"});
    remembering.post("/v1/runs", "k-1", &session).await;

    let first = remembering.post("/v1/sessions/chat/compact", "k-2", &json!({})).await;
    remembering.store.becomes(interrupted()).await;
    let again = remembering.post("/v1/sessions/chat/compact", "k-2", &json!({})).await;

    assert_eq!((first.status.as_u16(), first.text("id")), (201, again.text("id")), "{again:?}");
    assert_eq!(remembering.runs().await, 2);
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_request() {
    let remembering = remembering(given_two_answers()).await;
    let created = remembering.post("/v1/runs", "k", &json!({"input": "Hello"})).await;
    let other_path = format!("/v1/runs/{}/cancel", created.text("id"));
    for (path, body) in [("/v1/runs", json!({"input": "Goodbye"})), (other_path.as_str(), json!({"input": "Hello"}))] {
        let refused = remembering.post(path, "k", &body).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (422, "validation"), "{path}");
    }
    for wrong in ["", "two words", &"k".repeat(256)] {
        let refused = remembering.post("/v1/runs", wrong, &json!({"input": "Hello"})).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (400, "invalid_request"), "{wrong}");
    }
}

#[tokio::test]
async fn concurrent_repeats_are_handled_once() {
    let remembering = remembering(given_two_answers()).await;
    let body = json!({"input": "Hello"});

    let all = join_all((0..10).map(|_| remembering.post("/v1/runs", "k", &body))).await;

    for answer in all.iter().filter(|answer| answer.status != 201) {
        assert_eq!((answer.problem(), answer.header("retry-after")), ("conflict", "1"), "{answer:?}");
    }
    assert!(all.iter().any(|answer| answer.status == 201 && !answer.headers.contains_key("idempotent-replayed")));
    assert_eq!(remembering.runs().await, 1);
}

#[tokio::test]
async fn a_request_completes_after_its_client_disconnects() {
    let given = given_an_agent()
        .with_a_harmless_tool("files", "read")
        .where_servers(|servers| servers.take_ms("read", 300))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Read.")]));
    let remembering = remembering(given).await;
    let body = json!({"input": "Read"});
    let request = remembering.served.request(Method::POST, "/v1/runs").header("idempotency-key", "k").json(&body);
    let patience = Duration::from_millis(50);
    assert!(request.timeout(patience).send().await.is_err(), "the client has disconnected");

    let answered = async {
        loop {
            let answer = remembering.post("/v1/runs", "k", &body).await;
            if answer.status == 201 {
                break answer;
            }
            assert_eq!(answer.problem(), "conflict");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let answer = tokio::time::timeout(Duration::from_secs(10), answered).await.expect("it is answered");
    assert_eq!((answer.text("status"), answer.header("idempotent-replayed")), ("completed", "true"));
    assert_eq!(remembering.runs().await, 1);
}

#[tokio::test]
async fn a_repeat_of_a_streamed_creation_streams_from_the_start() {
    let remembering = remembering(given_two_answers()).await;
    let ask = |accept: &str| {
        let request = remembering.served.request(Method::POST, "/v1/runs?include=content");
        request.header("idempotency-key", "k").header("accept", accept).json(&json!({"input": "Hello"}))
    };
    let first = Stream::of(ask("text/event-stream")).await.rest().await;

    let mut again = Stream::of(ask("text/event-stream")).await;

    assert_eq!(again.response.status().as_u16(), 201);
    assert_eq!(again.response.headers()["idempotent-replayed"], "true");
    let again = again.rest().await;
    let kept = |frames: &[Frame]| frames.iter().filter(|frame| frame.id.is_some()).cloned().collect::<Vec<_>>();
    assert_eq!((kept(&again), again.last().unwrap().event.as_str()), (kept(&first), "execution.completed"));
    let state = HttpAnswer::of(ask("application/json").send().await.unwrap()).await;
    assert_eq!((state.status.as_u16(), state.text("status")), (201, "completed"));
    assert_eq!(remembering.runs().await, 1);
}

#[tokio::test]
async fn a_repeat_of_an_interrupted_creation_returns_the_run() {
    let remembering = remembering(given_two_answers()).await;
    let body = json!({"input": "Hello"});
    let first = remembering.post("/v1/runs", "k", &body).await;
    remembering.store.becomes(interrupted()).await;

    let again = remembering.post("/v1/runs", "k", &body).await;

    assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (201, "true"), "{again:?}");
    assert_eq!((&again.body, again.header("location")), (&first.body, first.header("location")));
    assert_eq!(remembering.runs().await, 1);
}

#[tokio::test]
async fn a_repeat_of_an_interrupted_fork_or_retry_returns_its_run() {
    for action in ["fork", "retry"] {
        let remembering = remembering(given_two_answers()).await;
        let source = remembering.served.run(json!({"input": "Hello"})).await;
        let path = format!("/v1/runs/{source}/{action}");
        let first = remembering.post(&path, "k", &json!({})).await;
        let stored = remembering.post(&path, "k", &json!({})).await;
        remembering.store.becomes(interrupted()).await;

        let again = remembering.post(&path, "k", &json!({})).await;

        assert_eq!((first.status.as_u16(), &stored.body), (201, &first.body), "{action}: {stored:?}");
        assert_eq!((again.status.as_u16(), &again.body), (201, &first.body), "{action}: {again:?}");
        assert_eq!(remembering.runs().await, 2);
    }
}

#[tokio::test]
async fn a_repeat_starts_a_run_that_was_recorded_but_not_started() {
    let remembering = remembering(given_two_answers()).await;
    let body = json!({"input": "Hello"});
    // The process ended between the record and the run.
    remembering.post("/v1/runs", "k", &body).await;
    let noted = remembering.store.asked();
    let store = Arc::new(Forgetful::default());
    let cut_off = IdempotentRequest { held_until: Timestamp::now() - jiff::SignedDuration::from_secs(1), ..noted };
    store.begin(&cut_off, Timestamp::now()).await.unwrap();
    let world = given_two_answers().kept(Kept::InMemory).await;
    let served = Served::with(world, |builder| builder.anonymous(Caller::local()).idempotency(store.clone())).await;
    let fresh = Remembering { served, store };

    let started = fresh.post("/v1/runs", "k", &body).await;

    assert_eq!((started.status.as_u16(), started.text("status")), (201, "completed"), "{started:?}");
    assert_eq!(Some(started.text("id")), cut_off.run.as_ref().map(|run| run.as_str()));
    assert_eq!(fresh.post("/v1/runs", "k", &body).await.body, started.body);
    assert_eq!(fresh.runs().await, 1);
}

#[tokio::test]
async fn any_other_interrupted_request_has_an_unknown_outcome() {
    let remembering = remembering(given_two_answers()).await;
    let run = remembering.served.run(json!({"input": "Hello"})).await;
    let path = format!("/v1/runs/{run}/cancel");
    assert_eq!(remembering.post(&path, "k", &json!({})).await.status, 200);
    remembering.store.becomes(interrupted()).await;

    let refused = remembering.post(&path, "k", &json!({})).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"));
    assert!(refused.text("detail").contains("outcome is unknown"), "{refused:?}");
    assert_eq!(refused.body["retryable"], false);
    assert!(!refused.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn a_refusal_is_not_stored_and_its_key_can_be_reused() {
    let remembering = remembering(given_two_answers()).await;
    let wrong = remembering.post("/v1/runs", "k", &json!({"input": "Hello", "agent": "unknown"})).await;
    assert!(wrong.status.is_client_error(), "{wrong:?}");
    let mended = remembering.post("/v1/runs", "k", &json!({"input": "Hello"})).await;
    assert_eq!((mended.status.as_u16(), mended.text("status")), (201, "completed"));
}

#[tokio::test]
async fn a_repeat_creates_no_second_key_and_no_secret_is_stored() {
    let remembering = remembering(given_two_answers()).await;
    let wanted = json!({"name": "ci", "scopes": ["runs:read"]});
    let made = remembering.post("/v1/keys", "k", &wanted).await;
    assert_eq!(made.status, 201);

    let again = remembering.post("/v1/keys", "k", &wanted).await;

    assert_eq!((again.status.as_u16(), again.problem()), (409, "conflict"), "{again:?}");
    assert!(!again.body.to_string().contains(made.text("secret")));
    let begun = remembering.store.begin(&remembering.store.asked(), Timestamp::now()).await.unwrap().unwrap();
    assert_eq!(begun.state, RequestState::NotStored);
    assert_eq!(remembering.served.get("/v1/keys").await.body["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_response_is_stored_for_its_caller_only() {
    let remembering = remembering(given_two_answers()).await;
    let body = json!({"input": "Hello"});
    let first = remembering.post("/v1/runs", "k", &body).await;
    let asked = remembering.store.asked();
    assert_eq!((asked.caller.as_str(), asked.tenant), ("local", Tenant::default()));
    let bob = Caller { name: "key:bob".into(), scopes: Scopes::all(), ..Caller::local() };
    let runner = remembering.served.world.runner.clone();
    let gateway = Gateway::builder(runner).anonymous(bob).idempotency(remembering.store.clone()).build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move { axum::serve(listener, gateway.router()).await.unwrap() });
    let of_bob = reqwest::Client::new().post(format!("http://{address}/v1/runs")).header("idempotency-key", "k");
    let of_bob = HttpAnswer::of(of_bob.json(&body).send().await.unwrap()).await;
    assert_ne!(of_bob.body["id"], first.body["id"]);
    assert!(!of_bob.headers.contains_key("idempotent-replayed"));
}

#[tokio::test]
async fn without_a_store_idempotency_keys_are_refused() {
    let served = Served::to_all(given_two_answers().kept(Kept::InMemory).await).await;
    let request = served.request(Method::POST, "/v1/runs").header("idempotency-key", "k");
    let refused = HttpAnswer::of(request.json(&json!({"input": "Hello"})).send().await.unwrap()).await;
    assert_eq!((refused.status.as_u16(), refused.problem()), (400, "invalid_request"));
}

#[tokio::test]
async fn a_stored_response_has_no_headers_of_its_first_request() {
    let remembering = remembering(given_two_answers()).await;
    remembering.post("/v1/runs", "k", &json!({"input": "Hello"})).await;
    let begun = remembering.store.begin(&remembering.store.asked(), Timestamp::now()).await.unwrap().unwrap();
    let RequestState::Answered(StoredResponse { headers, .. }) = begun.state else { panic!("it was answered") };
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-type", "etag", "location"]);
}

#[tokio::test]
async fn a_request_that_failed_after_its_effect_is_not_repeated() {
    let remembering =
        remembering(given_an_agent().whose_model_says(json!([{"calls": [{"name": "ext_lookup"}]}]))).await;
    let run = remembering.served.run(json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let (path, body) = (format!("/v1/runs/{run}/messages"), json!({"text": "Look at last week too"}));
    let facts = async || remembering.served.world.runner.journal(&run.as_str().into()).await.unwrap().len();
    let before = facts().await;
    remembering.served.world.store.fail_next(Fault::AcknowledgementLost);

    let failed = remembering.post(&path, "k", &body).await;
    let again = remembering.post(&path, "k", &body).await;

    assert_eq!((failed.status.as_u16(), failed.problem()), (503, "store_unavailable"));
    assert_eq!((again.status.as_u16(), again.problem()), (409, "conflict"), "{again:?}");
    assert!(again.text("detail").contains("outcome is unknown"), "{again:?}");
    assert_eq!(again.body["retryable"], false);
    assert_eq!(facts().await, before + 1, "the message was added once");
}

#[tokio::test]
async fn responses_about_a_deleted_run_are_gone_with_it() {
    let remembering = remembering(given_two_answers()).await;
    let run = remembering.served.run(json!({"input": "Hello"})).await;
    let (plain, encoded) = (format!("/v1/runs/{run}/cancel"), format!("/v1/runs/{}/cancel", run.replace('_', "%5F")));
    assert_ne!(plain, encoded);
    assert_eq!(remembering.post(&plain, "interrupted", &json!({})).await.status, 200);
    remembering.store.becomes(interrupted()).await;
    let first = remembering.post(&encoded, "answered", &json!({})).await;
    let again = remembering.post(&encoded, "answered", &json!({})).await;
    assert_eq!((again.status, &again.body), (first.status, &first.body), "{again:?}");

    let deleted = remembering.served.request(Method::DELETE, &format!("/v1/runs/{run}")).send().await.unwrap();

    assert_eq!(deleted.status(), 204);
    for (path, key) in [(&plain, "interrupted"), (&encoded, "answered")] {
        assert_eq!(remembering.post(path, key, &json!({})).await.problem(), "gone", "{key}");
    }
}
