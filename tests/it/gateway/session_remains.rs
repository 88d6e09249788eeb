//! What is left of a deleted session or run: no stored response and no grant quotes it (issue 39, rows 16 and 18); and
//! what lists show of the usage and the process of a run (row 28).

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::policy::Verdict;
use toolgate::ports::IdempotencyStore;
use toolgate::runner::{AgentRunner, DrainTimes, Request};
use toolgate::stores::{Durability, MemoryStore, SqliteStore};

use super::principals::{Badges, Person};
use super::served::{HttpAnswer, Served};
use super::test_site::{Site, until};
use crate::runner::world::{Given, Kept, given_an_agent, on_every_store, say};

const ANN: &str = "key:ann acme all";

/// A gateway whose store of responses is another one than that of the journals, or a file.
async fn remembering(given: Given, kept: Kept) -> (Served, Option<tempfile::TempDir>) {
    let directory = tempfile::TempDir::new().unwrap();
    let store: Arc<dyn IdempotencyStore> = match kept {
        Kept::InMemory => Arc::new(MemoryStore::new()),
        Kept::InAFile => {
            let file = directory.path().join("responses.db");
            Arc::new(SqliteStore::open_with_durability(&file, Durability::ProcessCrash).await.unwrap())
        }
    };
    let world = given.kept(kept).await;
    let served = Served::with(world, |builder| builder.authenticator(Arc::new(Badges)).idempotency(store)).await;
    (served, Some(directory))
}

async fn once(served: &Served, key: &str, path: &str, body: &Value) -> HttpAnswer {
    let request = served.request(Method::POST, path).header("x-badge", ANN).header("idempotency-key", key);
    HttpAnswer::of(request.json(body).send().await.unwrap()).await
}

on_every_store! {
    async fn a_repeated_request_brings_no_deleted_session_back(kept: Kept) {
        let clerk = given_an_agent().with_tools("files", &["delete"]).whose_policy_says(Verdict::Ask, "*");
        let (served, _directory) = remembering(clerk, kept).await;
        let ann = Person { served: &served, badge: ANN };
        let session = json!({"id": "chat-77", "title": "a secret", "metadata": {"why": "a secret"}});
        let grant = json!({"tool_name": "mcp_files_delete", "session_id": "chat-77", "reason": "a secret"});
        for is_repeat in [false, true] {
            for (key, path, body) in [("s", "/v1/sessions", &session), ("g", "/v1/approval-grants", &grant)] {
                let answer = once(&served, key, path, body).await;
                assert_eq!(answer.status, 201, "{answer:?}");
                if is_repeat {
                    assert_eq!(answer.header("idempotent-replayed"), "true");
                }
            }
        }

        assert_eq!(ann.delete("/v1/sessions/chat-77").await.status, 204);

        for (key, path, body) in [("s", "/v1/sessions", &session), ("g", "/v1/approval-grants", &grant)] {
            let gone = once(&served, key, path, body).await;
            assert_eq!((gone.status.as_u16(), gone.problem()), (410, "gone"), "{gone:?}");
            assert!(!gone.body.to_string().contains("secret"), "{gone:?}");
        }
    }

    async fn lists_and_sessions_show_the_usage_of_their_runs(kept: Kept) {
        let used = |tokens: u64, text: &str| json!({"say": text, "usage": {"input_tokens": tokens, "output_tokens": 1}});
        let turns = json!([used(10, "One."), used(20, "Two.")]);
        let (served, _directory) = remembering(given_an_agent().whose_model_says(turns), kept).await;
        let ann = Person { served: &served, badge: ANN };
        ann.post("/v1/runs", json!({"input": "First", "session_id": "chat-77"})).await;
        let second = ann.post("/v1/runs", json!({"input": "Second", "session_id": "chat-77"})).await;

        let listed = ann.get("/v1/runs").await;
        let usage = |row: &Value| row["usage"]["input_tokens"].as_u64();
        let rows = listed.body["data"].as_array().unwrap();
        assert_eq!(rows.iter().map(usage).collect::<Vec<_>>(), [Some(20), Some(10)]);
        assert_eq!(usage(&ann.get("/v1/sessions/chat-77").await.body), Some(30));
        assert_eq!(usage(&ann.get("/v1/sessions").await.body["data"][0]), Some(30));

        ann.post(&format!("/v1/runs/{}/retry", second.text("id")), json!({})).await;
        assert_eq!(usage(&ann.get("/v1/sessions/chat-77").await.body), Some(50), "a retry is paid for as well");
    }

    async fn a_run_whose_process_died_is_listed_as_interrupted(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([{"hang": true}])).kept(kept).await;
        let lost = world.another_process().await;
        let run = lost.start(Request::new("clerk", "Hello")).await.unwrap().run;
        let served = Served::to_all(world).await;
        assert_eq!(served.get("/v1/runs").await.body["data"][0]["status"], "running");

        release(&lost).await;

        let listed = served.get("/v1/runs").await;
        assert_eq!((&listed.body["data"][0]["id"], &listed.body["data"][0]["status"]), (&json!(run), &json!("interrupted")));
        let rows = served.world.runner.list(&Default::default()).await.unwrap();
        assert_eq!(serde_json::to_value(&rows[0]).unwrap()["interrupted"], true);
        assert_eq!(served.get("/v1/runs?status=running").await.body["data"][0]["status"], "interrupted");
    }
}

/// A site whose store has the grants too.
async fn site(given: Given, store: Arc<SqliteStore>) -> Site {
    let servers = given.servers();
    let builder = AgentRunner::builder().store(store.clone()).approvals(store).servers(servers);
    Site::over(builder.agent(given.agent()).build().unwrap()).await
}

#[tokio::test]
async fn a_grant_quotes_no_deleted_session_and_no_deleted_run() {
    let directory = tempfile::TempDir::new().unwrap();
    let store =
        SqliteStore::open_with_durability(directory.path().join("runs.db"), Durability::ProcessCrash).await.unwrap();
    let turns = json!([{"calls": [{"name": "mcp_files_delete", "arguments": {"path": "a secret"}}]}, say("Done.")]);
    let clerk = given_an_agent().with_tools("files", &["delete"]).whose_policy_says(Verdict::Ask, "*");
    let site = site(clerk.whose_model_says(turns), Arc::new(store)).await;
    for (session, scope) in [("chat-1", "session"), ("chat-2", "always")] {
        let run = site.post("/v1/runs", json!({"input": "Clean up", "session_id": session})).await;
        let approval = run.body["pending"][0]["approval_id"].as_str().unwrap();
        let decision = json!({"decision": "approve", "scope": scope, "match": "arguments", "reason": "a secret"});
        let decided = site.post(&format!("/v1/approvals/{approval}/decision"), decision).await;
        assert_eq!(decided.status, 200, "{decided:?}");
    }
    let future = json!({
        "tool_name": "mcp_files_delete", "session_id": "chat-1", "arguments": {"path": "a secret"}, "reason": "a secret",
    });
    site.post("/v1/approval-grants", future).await;
    let grants = async || site.get("/v1/approval-grants?ended=true").await.body["data"].as_array().unwrap().clone();
    until(async || grants().await.len() == 3).await;
    assert!(grants().await.iter().all(|grant| grant.to_string().matches("a secret").count() == 2));

    for session in ["chat-1", "chat-2"] {
        let id = session.into();
        until(async || site.runner.delete_session(&Default::default(), &id, "ann", None).await.is_ok()).await;
    }

    for grant in grants().await {
        assert!(!grant.to_string().contains("secret"), "{grant}");
        assert_eq!(grant["summary"], "mcp_files_delete");
        assert_eq!(grant["active"], grant["scope"] == "always", "{grant}");
    }
}

/// Ends a process: it gives up its runs.
async fn release(process: &AgentRunner) {
    process.drain(DrainTimes { rest: Duration::ZERO, step: Duration::ZERO }).await;
}
