//! What a server does for runs that nobody asks about: it takes up what was left behind, and tells runs that time ran out.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate::core::id::{NodeId, RunId};
use toolgate::core::run::Status;
use toolgate::runner::{AgentRunner, DrainTimes, Request};
use toolgate::stores::MemoryStore;

use super::queueing::agent;
use super::site::{Site, until};

fn process(store: &Arc<MemoryStore>, name: &str, turns: &serde_json::Value) -> AgentRunner {
    let builder = AgentRunner::builder().store(store.clone()).node(NodeId::from(name));
    builder.lease(Duration::from_millis(200)).agent(agent(turns)).build().unwrap()
}

async fn status(runner: &AgentRunner, run: &RunId) -> Status {
    runner.report(run).await.unwrap().status
}

#[tokio::test]
async fn runs_that_were_left_behind_go_on_when_a_server_starts_and_while_it_is_there() {
    let store = Arc::new(MemoryStore::new());
    let (gone, here) = (process(&store, "gone", &json!([{"hang": true}])), &json!([{"say": "Done."}]));
    let before = gone.start(Request::new("clerk", "Hello")).await.unwrap().run;
    let at_once = DrainTimes { rest: Duration::ZERO, step: Duration::ZERO };
    gone.drain(at_once).await;

    let site = Site::over(process(&store, "here", here)).await;

    until(async || status(&site.runner, &before).await == Status::Completed).await;
    let another = process(&store, "another", &json!([{"hang": true}]));
    let later = another.start(Request::new("clerk", "Hello")).await.unwrap().run;
    another.drain(at_once).await;
    until(async || status(&site.runner, &later).await == Status::Completed).await;
}

#[tokio::test]
async fn a_run_that_nobody_answers_in_time_goes_on_by_itself() {
    let store = Arc::new(MemoryStore::new());
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, {"say": "Then not."}]);
    let site = Site::over(process(&store, "here", &turns)).await;
    let tool = json!({"name": "lookup", "input_schema": {"type": "object"}, "deadline_s": 1});

    let pending = site.post("/v1/runs", json!({"input": "Hello", "external_tools": [tool]})).await;

    assert_eq!(pending.text("status"), "pending", "{pending:?}");
    let run = RunId::from(pending.text("id"));
    until(async || status(&site.runner, &run).await == Status::Completed).await;
}

#[tokio::test]
async fn nothing_is_done_any_more_when_the_server_stops() {
    let store = Arc::new(MemoryStore::new());
    let mut site = Site::over(process(&store, "here", &json!([{"say": "Done."}]))).await;
    site.gateway.stop();
    let ended = tokio::time::timeout(Duration::from_secs(5), site.rest.take().unwrap().end()).await;
    assert!(ended.is_ok(), "nobody waits for it");
}
