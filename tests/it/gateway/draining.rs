//! Draining: a server that stops lets its runs finish if they can, and releases the others, which another process
//! claims at once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::chat::Message;
use toolgate::core::id::NodeId;
use toolgate::core::run::{Event, JournalEntry, Status};
use toolgate::runner::{AgentRunner, Capacity, DrainTimes, Request, RunnerError};
use toolgate::stores::MemoryStore;

use super::queueing::agent;
use super::streamed::Stream;
use super::test_site::{Site, until};
use crate::fakes::Fault;
use crate::runner::world::{given_an_agent, say};

/// So long that no run is claimed because its lease expired.
const LEASE: Duration = Duration::from_secs(3600);

fn process(store: &Arc<MemoryStore>, name: &str, turns: &Value) -> AgentRunner {
    let builder = AgentRunner::builder().store(store.clone()).node(NodeId::from(name)).lease(LEASE);
    builder.agent(agent(turns)).build().unwrap()
}

fn times(rest_ms: u64, step_ms: u64) -> DrainTimes {
    DrainTimes { rest: Duration::from_millis(rest_ms), step: Duration::from_millis(step_ms) }
}

fn slowly_then_done() -> Value {
    json!([{"latency_ms": 2000, "calls": [{"name": "nothing_of_that_name"}]}, {"say": "Done."}])
}

async fn replies(runner: &AgentRunner, run: &toolgate::core::id::RunId) -> usize {
    let journal = runner.journal(run).await.unwrap();
    journal.iter().filter(|recorded| matches!(recorded.event, Event::ModelReplied { .. })).count()
}

#[tokio::test]
async fn a_run_that_ends_in_time_is_not_released() {
    let store = Arc::new(MemoryStore::new());
    let here = process(&store, "here", &slowly_then_done());
    let execution = here.start(Request::new("clerk", "Hello")).await.unwrap();

    assert_eq!(here.drain(times(200_000, 0)).await, 0);

    assert_eq!(execution.until_idle().await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn a_run_is_released_after_its_step_and_claimed_at_once() {
    let store = Arc::new(MemoryStore::new());
    let here = process(&store, "here", &slowly_then_done());
    let execution = here.start(Request::new("clerk", "Hello")).await.unwrap();
    let run = execution.run.clone();

    assert_eq!(here.drain(times(20, 200_000)).await, 0, "no step is aborted");

    assert_eq!(execution.until_idle().await.unwrap_err(), RunnerError::Released(run.clone()));
    assert_eq!(replies(&here, &run).await, 1, "the step in progress is recorded");
    let there = process(&store, "there", &slowly_then_done());
    let mut taken = there.recover().await.unwrap();
    assert_eq!(taken.len(), 1, "no process waits for a lease to expire");
    assert_eq!(taken.remove(0).until_idle().await.unwrap().status, Status::Completed);
    assert_eq!(replies(&there, &run).await, 2, "an answered request is not repeated");
}

#[tokio::test]
async fn a_step_that_does_not_end_is_aborted_and_repeated_elsewhere() {
    let store = Arc::new(MemoryStore::new());
    let here = process(&store, "here", &json!([{"hang": true}]));
    let execution = here.start(Request::new("clerk", "Hello")).await.unwrap();
    until(async || here.journal(&execution.run).await.unwrap().len() > 1).await;

    assert_eq!(here.drain(times(20, 20)).await, 1);

    assert_eq!(execution.until_idle().await.unwrap_err().code().as_str(), "unavailable");
    let there = process(&store, "there", &json!([{"say": "Done."}]));
    let mut taken = there.recover().await.unwrap();
    assert_eq!(taken.remove(0).until_idle().await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn a_queued_run_is_released_at_once() {
    let store = Arc::new(MemoryStore::new());
    let builder = AgentRunner::builder().store(store.clone()).lease(LEASE).agent(agent(&slowly_then_done()));
    let here = builder.capacity(Capacity { driven: 1, ..Capacity::default() }).build().unwrap();
    let first = here.start(Request::new("clerk", "Hello")).await.unwrap();
    let waits = here.start(Request::new("clerk", "Hello")).await.unwrap();

    let draining = tokio::spawn(async move { here.drain(times(200_000, 0)).await });
    let (released, drained) = (waits.run.clone(), waits.until_idle().await);
    assert_eq!(drained.unwrap_err(), RunnerError::Released(released.clone()));
    let there = process(&store, "there", &slowly_then_done());
    assert!(there.load(&first.run).await.unwrap().ending().is_none(), "and not only when the first run ends");
    until(async || there.recover().await.unwrap().iter().any(|taken| taken.run == released)).await;
    assert_eq!(first.until_idle().await.unwrap().status, Status::Completed);
    assert_eq!(draining.await.unwrap(), 0);
}

#[tokio::test]
async fn a_stopping_server_answers_waiting_clients_and_refuses_runs() {
    let store = Arc::new(MemoryStore::new());
    let site = Site::over(process(&store, "here", &json!([{"hang": true}]))).await;
    assert_eq!(site.get("/readyz").await.text("status"), "ready");
    let asked = site.post("/v1/runs", json!({"input": "Hello"}));
    let stopped = async {
        until(async || site.gateway.activity().driven == 1).await;
        site.gateway.stop();
        let draining = site.runner.clone();
        let draining = tokio::spawn(async move { draining.drain(times(300, 20)).await });
        until(async || site.get("/readyz").await.status == 503).await;
        let not_ready = site.get("/readyz").await;
        assert_eq!(not_ready.body["checks"], json!({"store": "ok", "store_writes": "ok", "takes_runs": "failing"}));
        assert_eq!(site.get("/healthz").await.status, 200, "the process is alive");
        let refused = site.post("/v1/runs", json!({"input": "Hello"})).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (503, "unavailable"));
        assert_eq!(refused.header("retry-after"), "1");
        draining.await.unwrap()
    };
    let (answer, cut) = tokio::join!(asked, stopped);
    assert_eq!(cut, 1);
    assert_eq!((answer.status.as_u16(), answer.text("status")), (202, "running"), "{answer:?}");
}

#[tokio::test]
async fn a_stopping_server_sends_all_written_events_first() {
    let store = Arc::new(MemoryStore::new());
    let site = Site::over(process(&store, "here", &json!([{"hang": true}]))).await;
    let execution = site.runner.start(Request::new("clerk", "Hello")).await.unwrap();
    let asked = |recorded: &JournalEntry| matches!(recorded.event, Event::ModelCalled { .. });
    until(async || site.runner.journal(&execution.run).await.unwrap().iter().any(asked)).await;
    let written = site.runner.journal(&execution.run).await.unwrap().len();
    site.gateway.stop();

    let url = format!("http://{}/v1/runs/{}/events", site.address, execution.run);
    let told = Stream::of(reqwest::Client::new().get(url)).await.rest().await;

    let ids: Vec<&str> = told.iter().filter_map(|frame| frame.id.as_deref()).collect();
    assert!(written > 2);
    assert_eq!((ids[0], ids[ids.len() - 1]), ("0", (written - 1).to_string().as_str()), "{told:?}");
    assert_eq!(told.last().unwrap().event, "server.draining");
}

#[tokio::test(start_paused = true)]
async fn a_tool_result_is_recorded_despite_a_concurrent_write() {
    let turn = json!({"calls": [{"name": "mcp_files_read"}]});
    let clerk = given_an_agent().with_tools("files", &["read"]).whose_model_says(json!([turn, say("Done.")]));
    let world = clerk.where_servers(|servers| servers.take_ms("read", 1000)).ready().await;
    let execution = world.start().await;
    until(async || world.servers.calls().len() == 1).await;
    world.store.fail_next(Fault::Intrusion(Event::MessageAdded { message: Message::user("Hurry") }.into()));

    assert_eq!(world.runner.drain(times(20, 200_000)).await, 0, "no step is aborted");

    assert!(world.store.is_spent());
    let journal = world.journal(&execution.run).await;
    assert_eq!(journal[journal.len() - 3..], ["message.added", "tool.completed", "execution.interrupted"]);
}
