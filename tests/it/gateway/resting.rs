//! What a server does for runs that nobody asks about: it takes up what was left behind, and tells runs that time ran out.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate::core::id::{NodeId, RunId};
use toolgate::core::run::Status;
use toolgate::core::tool::{CallReply, Outcome, TaskHandle, ToolOutput};
use toolgate::runner::{AgentRunner, DrainTimes, Request};
use toolgate::stores::MemoryStore;

use super::queueing::agent;
use super::site::{Site, until};
use crate::runner::world::{Kept, given_an_agent, say};

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
async fn a_call_that_its_server_goes_on_with_is_asked_about_until_it_is_done_and_the_run_goes_on_by_itself() {
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
        (pending.text("status"), &pending.body["pending"][0]["kind"]),
        ("pending", &json!("task")),
        "{pending:?}"
    );
    let path = format!("/v1/runs/{}", pending.text("id"));
    until(async || site.get(&path).await.text("status") == "completed").await;
    assert_eq!(site.get(&path).await.body["output"]["text"], "It says: printed.");
    assert_eq!(world.servers.calls().len(), 1);
}

#[tokio::test]
async fn a_server_that_never_tells_of_a_task_keeps_no_other_run_waiting() {
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
    assert_eq!(world.servers.asked_in_vain("task_mute"), 1, "it is not asked again before it has answered");
}

#[tokio::test]
async fn a_run_that_another_process_lays_down_is_taken_up_although_its_leases_are_long() {
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
async fn nothing_is_done_any_more_when_the_server_stops() {
    let store = Arc::new(MemoryStore::new());
    let mut site = Site::over(process(&store, "here", &json!([{"say": "Done."}]))).await;
    site.gateway.stop();
    let ended = tokio::time::timeout(Duration::from_secs(5), site.rest.take().unwrap().end()).await;
    assert!(ended.is_ok(), "nobody waits for it");
}
