//! Background worker: recovers orphaned runs, expires overdue items, and polls tasks.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate::core::id::{NodeId, RunId};
use toolgate::core::run::Status;
use toolgate::core::tool::{CallReply, Outcome, TaskHandle, ToolOutput};
use toolgate::runner::{AgentRunner, DrainTimes, Request};
use toolgate::stores::MemoryStore;

use super::queueing::agent;
use super::test_site::{Site, until};
use crate::runner::world::{Kept, given_an_agent, say};

fn process(store: &Arc<MemoryStore>, name: &str, turns: &serde_json::Value) -> AgentRunner {
    let builder = AgentRunner::builder().store(store.clone()).node(NodeId::from(name));
    builder.lease(Duration::from_millis(200)).agent(agent(turns)).build().unwrap()
}

async fn status(runner: &AgentRunner, run: &RunId) -> Status {
    runner.report(run).await.unwrap().status
}

#[tokio::test]
async fn orphaned_runs_are_recovered_at_startup_and_later() {
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
async fn an_unanswered_item_expires_and_its_run_resumes() {
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
async fn a_task_is_polled_until_it_is_done_and_its_run_resumes() {
    let handle = TaskHandle { id: "task_7".into(), message: None, poll_ms: Some(100), ttl_ms: None };
    let still = || CallReply::Task(handle.clone());
    let done: CallReply = Outcome::Returned(ToolOutput::text("printed")).into();
    let world = given_an_agent()
        .with_tools("shop", &["print"])
        .where_servers(|servers| servers.reply("print", [still()]))
        .where_servers(|servers| servers.say_of_task("task_7", [Ok(still()), Err("it is busy".into()), Ok(done)]))
        .whose_model_says(json!([{"calls": [{"name": "mcp_shop_print"}]}, say("It says: {{last_result}}.")]))
        .kept(Kept::InAFile)
        .await;
    let site = Site::over(world.runner.clone()).await;

    let pending = site.post("/v1/runs", json!({"input": "Hello"})).await;

    assert_eq!(
        (pending.text("status"), &pending.body["pending"][0]["type"]),
        ("pending", &json!("task")),
        "{pending:?}"
    );
    let path = format!("/v1/runs/{}", pending.text("id"));
    until(async || site.get(&path).await.text("status") == "completed").await;
    assert_eq!(site.get(&path).await.body["output"]["text"], "It says: printed.");
    assert_eq!(world.servers.calls().len(), 1);
}

#[tokio::test]
async fn a_server_that_never_answers_a_poll_delays_no_other_run() {
    let task =
        |id: &str| CallReply::Task(TaskHandle { id: id.into(), message: None, poll_ms: Some(100), ttl_ms: None });
    let done: CallReply = Outcome::Returned(ToolOutput::text("printed")).into();
    let world = given_an_agent()
        .with_tools("shop", &["print"])
        .where_servers(|servers| servers.reply("print", [task("task_mute"), task("task_7")]))
        .where_servers(|servers| servers.hang_in_task("task_mute"))
        .where_servers(|servers| servers.say_of_task("task_7", [Ok(done)]))
        .whose_model_says(json!([{"calls": [{"name": "mcp_shop_print"}]}, say("It says: {{last_result}}.")]))
        .ready()
        .await;
    let site = Site::over(world.runner.clone()).await;
    site.post("/v1/runs", json!({"input": "Hello"})).await;
    until(async || world.servers.asked_in_vain("task_mute") > 0).await;

    let other = site.post("/v1/runs", json!({"input": "Hello"})).await;

    let path = format!("/v1/runs/{}", other.text("id"));
    until(async || site.get(&path).await.text("status") == "completed").await;
    assert_eq!(world.servers.asked_in_vain("task_mute"), 1, "it is not polled again before it has answered");
}

#[tokio::test]
async fn a_run_released_elsewhere_is_claimed_before_its_lease_ends() {
    let store = Arc::new(MemoryStore::new());
    let long = |name: &str, turns| {
        let builder = AgentRunner::builder().store(store.clone()).node(NodeId::from(name));
        builder.lease(Duration::from_secs(600)).agent(agent(&turns)).build().unwrap()
    };
    let site = Site::over(long("here", json!([{"say": "Done."}]))).await;
    let there = long("there", json!([{"hang": true}]));
    let run = there.start(Request::new("clerk", "Hello")).await.unwrap().run;
    there.drain(DrainTimes { rest: Duration::ZERO, step: Duration::ZERO }).await;
    until(async || status(&site.runner, &run).await == Status::Completed).await;
}

#[tokio::test]
async fn the_worker_ends_when_the_server_stops() {
    let store = Arc::new(MemoryStore::new());
    let mut site = Site::over(process(&store, "here", &json!([{"say": "Done."}]))).await;
    site.gateway.stop();
    let ended = tokio::time::timeout(Duration::from_secs(5), site.rest.take().unwrap().end()).await;
    assert!(ended.is_ok(), "no client waits for it");
}
