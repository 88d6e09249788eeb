//! Clients that disconnect as soon as their request is complete: the server finishes the work it has begun.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::request::Parts;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};
use toolgate::core::policy::Verdict;
use toolgate::core::run::Status;
use toolgate::gateway::{Authenticator, Gateway, Problem, ServeSettings};
use toolgate::ports::{RunFilter, RunRow};
use toolgate::runner::{AgentRunner, Request};
use toolgate::service::Caller;
use toolgate::stores::{Durability, SqliteStore};

use super::test_site::{Site, until};
use crate::runner::world::{Given, given_an_agent, names, say};

/// So long that no run resumes because its lease expired.
const LEASE: Duration = Duration::from_secs(3600);

/// How often each request is abandoned: every delay of `DELAYS_MS`, with a FIN and with a RST.
const ROUNDS: u32 = 100;
const DELAYS_MS: u64 = 7;

struct Abandoned {
    site: Site,
    _directory: TempDir,
}

impl Abandoned {
    async fn serves(given: Given) -> Self {
        let directory = TempDir::new().unwrap();
        let runner = runner(&directory, given).await;
        Self { site: Site::over(runner).await, _directory: directory }
    }

    /// Sends a complete request and closes the connection without reading an answer, `round % 7` ms later.
    async fn abandon(&self, round: u32, path: &str, body: &Value) {
        let body = body.to_string();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ");
        let mut socket = TcpStream::connect(self.site.address).await.unwrap();
        socket.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(u64::from(round) % DELAYS_MS)).await;
        if round.is_multiple_of(2) {
            socket.set_zero_linger().unwrap();
        }
    }

    /// Starts a run and waits until it is idle. Returns its address and its first pending item.
    async fn resting(&self) -> (String, Value) {
        let created = self.site.post("/v1/runs", json!({"input": "Hello"})).await;
        assert_eq!(created.status, 201, "{created:?}");
        (format!("/v1/runs/{}", created.text("id")), created.body["pending"][0].clone())
    }

    async fn runs(&self) -> Vec<RunRow> {
        self.site.runner.list(&RunFilter { limit: 1000, ..RunFilter::default() }).await.unwrap()
    }

    /// Waits until no run is running, in the store and in this process.
    async fn all_rest(&self) {
        until(async || {
            let is_at_work = self.runs().await.iter().any(|row| row.status == Status::Running);
            !is_at_work && self.site.gateway.activity().driven == 0
        })
        .await;
    }

    /// Waits until more runs than `some` exist, every one is completed and none is driven. Returns their number. A
    /// request that was abandoned may arrive at any time, so one listing decides.
    async fn all_complete(&self, some: usize) -> usize {
        let mut completed = 0;
        until(async || {
            let runs = self.runs().await;
            completed = runs.len();
            let is_at_work = runs.iter().any(|row| row.status != Status::Completed);
            completed > some && !is_at_work && self.site.gateway.activity().driven == 0
        })
        .await;
        assert!(self.completed().await >= completed);
        completed
    }

    /// How many runs are completed; no run has been resumed more than once.
    async fn completed(&self) -> usize {
        let mut completed = 0;
        for row in self.runs().await {
            let journal = self.site.runner.journal(&row.id).await.unwrap();
            let resumed = names(&journal).into_iter().filter(|name| *name == "execution.resumed").count();
            assert!(resumed <= 1, "{:?}", names(&journal));
            completed += usize::from(row.status == Status::Completed);
        }
        completed
    }
}

async fn runner(directory: &TempDir, given: Given) -> AgentRunner {
    let store = open(directory.path()).await;
    let builder = AgentRunner::builder().store(store).servers(given.servers()).lease(LEASE).poll(LEASE);
    builder.agent(given.agent()).build().unwrap()
}

async fn open(directory: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open_with_durability(&directory.join("runs.db"), Durability::ProcessCrash).await.unwrap())
}

fn one_order() -> Given {
    let turns = json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]);
    given_an_agent().with_an_external_tool("order").whose_model_says(turns)
}

/// An authenticator that looks up credentials until it is released.
struct SlowAuthenticator {
    arrived: Notify,
    released: Semaphore,
}

/// The authenticator, as the gateway has it.
struct Waits(Arc<SlowAuthenticator>);

#[async_trait]
impl Authenticator for Waits {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Caller>, Problem> {
        if !request.method.is_safe() {
            self.0.arrived.notify_one();
            self.0.released.acquire().await.unwrap().forget();
        }
        Ok(Some(Caller::local()))
    }
}

// Issue 39, row 21
#[tokio::test]
async fn a_whole_request_is_handled_although_its_client_has_gone_during_authentication() {
    let directory = TempDir::new().unwrap();
    let given = given_an_agent().whose_model_says(json!([say("Done.")]));
    let slow = Arc::new(SlowAuthenticator { arrived: Notify::new(), released: Semaphore::new(0) });
    let gateway =
        Gateway::builder(runner(&directory, given).await).authenticator(Arc::new(Waits(slow.clone()))).build();
    let server = Abandoned { site: Site::serving(gateway, ServeSettings::default()).await, _directory: directory };
    server.site.runner.start(Request { session: Some("chat".into()), ..Request::new("clerk", "Hi") }).await.unwrap();
    server.all_rest().await;

    for (method, path, body, runs) in [
        ("POST", "/v1/runs", r#"{"input": "Hello"}"#, 2),
        ("POST", "/v1/sessions/chat/runs", r#"{"input": "Hello"}"#, 3),
        ("DELETE", "/v1/sessions/chat", "", 1),
    ] {
        let mut socket = TcpStream::connect(server.site.address).await.unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        socket.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        slow.arrived.notified().await;
        drop(socket);
        for _ in 0..5 {
            // The server does other things meanwhile.
            assert_eq!(server.site.get("/v1/runs").await.status, 200);
        }
        slow.released.add_permits(1);
        until(async || server.runs().await.len() == runs).await;
        server.all_rest().await;
    }

    until(async || server.site.get("/v1/sessions/chat").await.status == 410).await;
    assert_eq!(server.completed().await, 1, "the session's runs are deleted, and the other run completed");
}

#[tokio::test]
async fn every_whole_request_of_a_client_that_closes_at_once_is_handled() {
    let server = Abandoned::serves(given_an_agent().whose_model_says(json!([say("Done.")]))).await;
    let body = r#"{"input": "Hello"}"#;
    let (source, _) = server.resting().await;
    for round in 0..ROUNDS {
        // With and without a body.
        let (path, body) = if round % 2 == 0 { ("/v1/runs".to_owned(), body) } else { (format!("{source}/fork"), "") };
        let mut socket = TcpStream::connect(server.site.address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        socket.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    }

    assert_eq!(server.all_complete(ROUNDS as usize).await, ROUNDS as usize + 1);
}

#[tokio::test]
async fn a_run_continues_after_its_creation_was_abandoned() {
    let server = Abandoned::serves(given_an_agent().whose_model_says(json!([say("Done.")]))).await;
    for round in 0..ROUNDS {
        server.abandon(round, "/v1/runs", &json!({"input": "Hello"})).await;
    }

    // Some requests arrive.
    server.all_complete(0).await;
}

#[tokio::test]
async fn a_run_continues_after_its_resume_was_abandoned() {
    let server = Abandoned::serves(one_order()).await;
    for round in 0..ROUNDS {
        let (run, pending) = server.resting().await;
        let result = json!({"answers": [{"type": "result", "call_id": pending["call_id"], "output": "found"}]});
        server.abandon(round, &format!("{run}/resume"), &result).await;
    }

    server.all_rest().await;

    assert!(server.completed().await > 0, "some requests arrive");
}

#[tokio::test]
async fn a_run_continues_after_its_decision_was_abandoned() {
    let turns = json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Done.")]);
    let clerk = given_an_agent().with_tools("files", &["delete"]).whose_policy_says(Verdict::Ask, "*");
    let server = Abandoned::serves(clerk.whose_model_says(turns)).await;
    for round in 0..ROUNDS {
        let (_, pending) = server.resting().await;
        let path = format!("/v1/approvals/{}/decision", pending["approval_id"].as_str().unwrap());
        server.abandon(round, &path, &json!({"decision": "approve"})).await;
    }

    server.all_rest().await;

    assert!(server.completed().await > 0, "some requests arrive");
}

#[tokio::test]
async fn a_fork_continues_after_its_request_was_abandoned() {
    let server = Abandoned::serves(given_an_agent().whose_model_says(json!([say("Done.")]))).await;
    let (source, _) = server.resting().await;
    for round in 0..ROUNDS {
        server.abandon(round, &format!("{source}/fork"), &json!({"at": 1})).await;
    }

    // Some requests arrive.
    server.all_complete(1).await;
}

#[tokio::test]
async fn a_run_continues_after_an_abandoned_message() {
    let server = Abandoned::serves(one_order()).await;
    let mut waiting = Vec::new();
    for round in 0..ROUNDS {
        let (run, pending) = server.resting().await;
        server.abandon(round, &format!("{run}/messages"), &json!({"text": "Hurry"})).await;
        waiting.push((run, pending));
    }
    for (run, pending) in waiting {
        let result = json!({"answers": [{"type": "result", "call_id": pending["call_id"], "output": "found"}]});
        server.site.post(&format!("{run}/resume"), result).await;
    }

    assert_eq!(server.all_complete(0).await, ROUNDS as usize);
}

#[tokio::test]
async fn a_call_stops_after_its_cancel_was_abandoned() {
    let turns = json!([{"calls": [{"name": "mcp_files_hang"}]}, say("Done.")]);
    let clerk = given_an_agent().with_tools("files", &["hang"]).where_servers(|servers| servers.hang_in("hang"));
    let server = Abandoned::serves(clerk.whose_model_says(turns)).await;
    for round in 0..ROUNDS {
        let started = server.site.post_preferring("respond-async", "/v1/runs", json!({"input": "Hello"})).await;
        server.abandon(round, &format!("/v1/runs/{}/cancel", started.text("id")), &json!({})).await;
    }

    // Every run that was cancelled is released by its driver, which no poll informs.
    until(async || {
        let cancelled = server.runs().await.iter().filter(|row| row.status == Status::Cancelled).count();
        cancelled > 0 && server.site.gateway.activity().driven + cancelled == ROUNDS as usize
    })
    .await;
}
