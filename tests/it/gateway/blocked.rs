//! Blocked runs, whose configuration is gone: a server shows them, can cancel them, and enforces their deadline.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate::core::id::{NodeId, RunId};
use toolgate::core::run::Limits;
use toolgate::runner::{Agent, AgentRunner, DrainTimes, Request};
use toolgate::stores::MemoryStore;

use super::queueing::agent;
use super::test_site::{Site, until};

fn process(store: &Arc<MemoryStore>, name: &str, agent: Agent) -> AgentRunner {
    let builder = AgentRunner::builder().store(store.clone()).node(NodeId::from(name));
    builder.lease(Duration::from_millis(200)).agent(agent).build().unwrap()
}

/// A run of `clerk` that its process left halfway, within these limits.
async fn orphan(store: &Arc<MemoryStore>, limits: Limits) -> RunId {
    let gone = process(store, "gone", Agent { limits, ..agent(&json!([{"hang": true}])) });
    let run = gone.start(Request::new("clerk", "Hello")).await.unwrap().run;
    gone.drain(DrainTimes { rest: Duration::ZERO, step: Duration::ZERO }).await;
    run
}

fn another_agent() -> Agent {
    Agent { name: "auditor".into(), ..agent(&json!([{"say": "Done."}])) }
}

#[tokio::test]
async fn a_run_without_its_agent_is_blocked_and_can_be_cancelled() {
    let store = Arc::new(MemoryStore::new());
    let run = orphan(&store, Limits::default()).await;
    let site = Site::over(process(&store, "here", another_agent())).await;
    let path = format!("/v1/runs/{run}");

    let shown = site.get(&path).await;
    let listed = site.get("/v1/runs").await;

    assert_eq!(
        (shown.text("status"), &shown.body["blocked"]["code"]),
        ("running", &json!("configuration")),
        "{shown:?}"
    );
    assert!(shown.body["blocked"]["message"].as_str().unwrap().contains("agent `clerk` is not configured here"));
    assert_eq!(listed.body["data"][0]["blocked"], shown.body["blocked"]);
    let cancelled = site.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!((cancelled.text("status"), &cancelled.body["blocked"]), ("cancelled", &json!(null)), "{cancelled:?}");
}

#[tokio::test]
async fn a_blocked_run_resumes_in_a_process_that_has_its_agent() {
    let store = Arc::new(MemoryStore::new());
    let run = orphan(&store, Limits::default()).await;
    let site = Site::over(process(&store, "here", another_agent())).await;
    assert!(site.get(&format!("/v1/runs/{run}")).await.body["blocked"].is_object());

    let knowing = Site::over(process(&store, "knowing", agent(&json!([{"say": "Done."}])))).await;

    until(async || knowing.get(&format!("/v1/runs/{run}")).await.text("status") == "completed").await;
    assert_eq!(site.get(&format!("/v1/runs/{run}")).await.body["blocked"], json!(null));
}

#[tokio::test]
async fn a_blocked_run_ends_at_its_deadline() {
    let store = Arc::new(MemoryStore::new());
    let run = orphan(&store, Limits { deadline_s: Some(1), ..Limits::default() }).await;

    let site = Site::over(process(&store, "here", another_agent())).await;

    until(async || site.get(&format!("/v1/runs/{run}")).await.text("status") == "failed").await;
    assert_eq!(site.get(&format!("/v1/runs/{run}")).await.body["error"]["code"], "deadline_exceeded");
}

#[tokio::test]
async fn a_run_that_another_process_resumed_is_no_longer_counted_as_blocked() {
    let store = Arc::new(MemoryStore::new());
    orphan(&store, Limits::default()).await;
    let site = Site::over(process(&store, "here", another_agent())).await;
    until(async || site.get("/readyz").await.body["blocked_runs"] == 1).await;
    assert_eq!(site.get("/readyz").await.text("status"), "ready");

    let _knowing = Site::over(process(&store, "knowing", agent(&json!([{"say": "Done."}])))).await;

    until(async || site.get("/readyz").await.body["blocked_runs"] == 0).await;
}
