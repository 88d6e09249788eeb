//! Reload of the configuration while runs are in progress: each continues with the one it began with.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use toolgate::core::run::Status;
use toolgate::runner::{Agent, AgentRunner, DrainTimes, Request};
use toolgate::stores::MemoryStore;

use super::queueing::agent;
use super::test_site::{Site, until};
use crate::fakes::FakeServers;

#[tokio::test]
async fn runs_keep_their_agent_across_a_reload() {
    let old = json!([{"latency_ms": 300, "calls": [{"name": "nothing_of_that_name"}]}, {"say": "The old one."}]);
    let builder = AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent(&old));
    let site = Site::over(builder.build().unwrap()).await;
    let under_way = site.post_preferring("respond-async", "/v1/runs", json!({"input": "Hello"})).await;

    let new = AgentRunner::builder().agent(agent(&json!([{"say": "The new one."}])));
    site.gateway.replace(site.runner.reconfigured(new).unwrap(), std::sync::Arc::new(toolgate::gateway::NoBackends));

    let begun = site.post("/v1/runs", json!({"input": "Hello"})).await;
    assert_eq!(begun.body["output"]["text"], "The new one.");
    let path = format!("/v1/runs/{}", under_way.text("id"));
    until(async || site.get(&path).await.text("status") == "completed").await;
    assert_eq!(site.get(&path).await.body["output"]["text"], "The old one.");
}

/// A runner with servers of its own, and a weak reference to them.
fn with_servers(turns: &serde_json::Value) -> (AgentRunner, Weak<FakeServers>) {
    let servers = Arc::new(FakeServers::default());
    let seen = Arc::downgrade(&servers);
    let builder = AgentRunner::builder().store(Arc::new(MemoryStore::new())).servers(servers);
    (builder.agent(agent(turns)).build().unwrap(), seen)
}

fn with_others() -> toolgate::runner::Builder {
    AgentRunner::builder().servers(Arc::new(FakeServers::default())).agent(agent(&json!([{"hang": true}])))
}

#[tokio::test]
async fn old_servers_close_with_the_last_run_that_uses_them() {
    let (old, servers) = with_servers(&json!([{"hang": true}]));
    let first = old.start(Request::new("clerk", "Hello")).await.unwrap();
    let new = old.reconfigured(with_others()).unwrap();
    let second = new.start(Request::new("clerk", "Hello")).await.unwrap();
    old.cancel(&first.run, None, None).await.unwrap();
    first.until_idle().await.unwrap();

    drop(old);

    until(async || servers.upgrade().is_none()).await;
    new.cancel(&second.run, None, None).await.unwrap();
}

#[tokio::test]
async fn an_open_stream_does_not_keep_old_servers_open() {
    let (old, servers) = with_servers(&json!([{"calls": [{"name": "ext_lookup"}]}]));
    let mut site = Site::over(old).await;
    let body = json!({"input": "Hello", "external_tools": [{"name": "lookup"}]});
    let pending = site.post("/v1/runs", body).await;
    assert_eq!(pending.text("status"), "pending", "{pending:?}");
    let events = format!("http://{}/v1/runs/{}/events", site.address, pending.text("id"));
    let watching = reqwest::Client::new().get(events).header("accept", "text/event-stream").send().await.unwrap();

    site.runner = site.runner.reconfigured(with_others()).unwrap();
    site.gateway.replace(site.runner.clone(), Arc::new(toolgate::gateway::NoBackends));

    until(async || servers.upgrade().is_none()).await;
    assert_eq!(site.gateway.open_streams(), 1);
    drop(watching);
}

#[tokio::test]
async fn a_new_runner_cancels_and_drains_old_runs() {
    let builder = AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent(&json!([{"hang": true}])));
    let old = builder.build().unwrap();
    let (first, second) = (Request::new("clerk", "Hello"), Request::new("clerk", "Hello"));
    let (first, second) = (old.start(first).await.unwrap(), old.start(second).await.unwrap());
    let new = old.reconfigured(AgentRunner::builder().agent(agent(&json!([])))).unwrap();

    new.cancel(&first.run, None, None).await.unwrap();

    assert_eq!(first.until_idle().await.unwrap().status, Status::Cancelled);
    assert_eq!(new.activity().driven, 1);
    let times = DrainTimes { rest: Duration::from_millis(20), step: Duration::from_millis(20) };
    assert_eq!(new.drain(times).await, 1);
    assert!(second.until_idle().await.is_err());
}

#[tokio::test]
async fn no_request_about_a_run_without_its_agent_is_an_internal_error() {
    let waits = agent(&json!([{"calls": [{"name": "ext_lookup"}]}]));
    let builder = AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(waits);
    let site = Site::over(builder.build().unwrap()).await;
    let body = json!({"input": "Hello", "external_tools": [{"name": "lookup"}]});
    let run = site.post("/v1/runs", body).await;
    let call = &run.body["pending"][0]["call_id"];
    let ended = site.post("/v1/runs", json!({"input": "Hello", "session_id": "chat-77"})).await;
    site.post(&format!("/v1/runs/{}/cancel", ended.text("id")), json!({})).await;
    let other = Agent { name: "another".into(), ..agent(&json!([])) };
    let new = site.runner.reconfigured(AgentRunner::builder().agent(other)).unwrap();
    site.gateway.replace(new, Arc::new(toolgate::gateway::NoBackends));

    let given = json!({"answers": [{"type": "result", "call_id": call, "output": "paid"}]});
    let refused = site.post(&format!("/v1/runs/{}/resume", run.text("id")), given).await;
    let named = site.post("/v1/runs", json!({"input": "Hello", "agent": "clerk"})).await;

    // Issue 39, row 22
    let ended = format!("/v1/runs/{}", ended.text("id"));
    let others = [
        site.post(&format!("{ended}/retry"), json!({})).await,
        site.post(&format!("{ended}/fork"), json!({})).await,
        site.post("/v1/sessions/chat-77/compact", json!({})).await,
        site.post("/v1/sessions/chat-77/runs", json!({"input": "Hello"})).await,
    ];
    for refused in others.iter().chain([&refused]) {
        assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"), "{refused:?}");
        assert_eq!(refused.body["retryable"], false, "{refused:?}");
        assert!(refused.text("detail").contains("clerk") && refused.body["errors"] == json!([]), "{refused:?}");
    }
    assert_eq!((named.problem(), &named.body["errors"][0]["pointer"]), ("validation", &json!("/agent")));
}
