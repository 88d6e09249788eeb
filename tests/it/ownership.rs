//! Who keeps a run: a process that cannot drive a run leaves it to others, and one that waits for a slow server still
//! hears that the run is over.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use toolgate::core::id::{NodeId, RunId, ServerId};
use toolgate::core::policy::Policy;
use toolgate::core::run::{Budget, OutputVerdict, RunRules, Spec, Status};
use toolgate::core::tool::{DeliveredReply, Progress, ServerTools};
use toolgate::core::trace::SpanContext;
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::{McpCall, McpServers, OutputValidator};
use toolgate::runner::{Agent, AgentRunner, Builder, Request};
use toolgate::stores::MemoryStore;

const LEASE: Duration = Duration::from_millis(400);

fn agent(name: &str, turns: serde_json::Value) -> Agent {
    let script = Script::from_json(&json!({"turns": turns}).to_string()).unwrap();
    let model = Arc::new(ScriptedModel::new("scripted", script));
    Agent { policy: Arc::new(Policy::allow_always()), ..Agent::new(name, model) }
}

fn process(store: &Arc<MemoryStore>, name: &str) -> Builder {
    AgentRunner::builder().store(store.clone()).node(NodeId::from(name)).lease(LEASE)
}

fn busy() -> serde_json::Value {
    json!([{"hang": true}])
}

/// A run of that agent whose process is gone: no process renews its lease.
async fn abandoned(store: &Arc<MemoryStore>, agent_name: &str) -> RunId {
    let gone = process(store, &format!("gone_{agent_name}")).agent(agent(agent_name, busy())).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let name = agent_name.to_owned();
    let run = std::thread::spawn(move || {
        let run = runtime.block_on(async { gone.start(Request::new(name.as_str(), "Hello")).await.unwrap().run });
        runtime.shutdown_background();
        run
    });
    run.join().unwrap()
}

#[tokio::test]
async fn a_run_that_cannot_be_driven_here_is_left_to_a_process_that_can_while_others_are_driven_on() {
    let store = Arc::new(MemoryStore::new());
    let foreign = abandoned(&store, "foreign").await;
    tokio::time::sleep(LEASE * 2).await;
    let here = process(&store, "here").agent(agent("own", busy())).build().unwrap();
    let own = here.start(Request::new("own", "Hello")).await.unwrap();

    assert_eq!(here.recover().await.unwrap().len(), 0, "its agent is not known here");
    // Driven on all the while, so leases are renewed all the while.
    tokio::time::sleep(LEASE * 3).await;

    let there = process(&store, "there").agent(agent("foreign", json!([{"say": "Done."}]))).build().unwrap();
    let mut taken = there.recover().await.unwrap();
    assert_eq!(taken.iter().map(|execution| execution.run.clone()).collect::<Vec<_>>(), [foreign]);
    assert_eq!(taken.remove(0).until_idle().await.unwrap().status, Status::Completed);
    here.cancel(&own.run, None, None).await.unwrap();
}

#[tokio::test]
async fn runs_that_cannot_be_driven_here_do_not_hide_those_that_can() {
    let store = Arc::new(MemoryStore::new());
    for _ in 0..70 {
        abandoned(&store, "foreign").await;
    }
    let own = abandoned(&store, "own").await;
    tokio::time::sleep(LEASE * 2).await;

    let here = process(&store, "here").agent(agent("own", json!([{"say": "Done."}]))).build().unwrap();
    let taken = here.recover().await.unwrap();

    assert_eq!(taken.iter().map(|execution| execution.run.clone()).collect::<Vec<_>>(), [own]);
}

/// A server that never comes up.
struct NeverListed;

#[async_trait]
impl McpServers for NeverListed {
    async fn list(&self, _servers: &[ServerId], _trace: &SpanContext) -> Vec<ServerTools> {
        std::future::pending().await
    }

    async fn call(&self, _call: McpCall<'_>, _progress: &(dyn Fn(Progress) + Send + Sync)) -> DeliveredReply {
        panic!("nothing was listed")
    }

    async fn release(&self, _run: &RunId, _trace: &SpanContext) {}
}

/// A validator that never answers.
struct NeverChecked;

#[async_trait]
impl OutputValidator for NeverChecked {
    fn takes_schema(&self, _schema: &serde_json::Value) -> Result<(), String> {
        Ok(())
    }

    async fn check(&self, _spec: &Spec, _answer: &str, _budget: &Budget) -> OutputVerdict {
        std::future::pending().await
    }
}

async fn ends_at_once_when_cancelled(runner: AgentRunner) {
    let execution = runner.start(Request::new("own", "Hello")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = tokio::time::Instant::now();

    runner.cancel(&execution.run, None, None).await.unwrap();
    let rested =
        tokio::time::timeout(Duration::from_secs(60), execution.until_idle()).await.expect("it rests").unwrap();

    assert_eq!((rested.status, began.elapsed()), (Status::Cancelled, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_heard_while_a_server_starts() {
    let own = Agent { servers: vec!["slow".into()], ..agent("own", json!([{"say": "Done."}])) };
    let store = Arc::new(MemoryStore::new());
    ends_at_once_when_cancelled(process(&store, "here").servers(Arc::new(NeverListed)).agent(own).build().unwrap())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_heard_while_an_answer_is_checked() {
    let own = Agent {
        rules: RunRules { validate_output: true, ..RunRules::default() },
        ..agent("own", json!([{"say": "Done."}]))
    };
    let store = Arc::new(MemoryStore::new());
    ends_at_once_when_cancelled(process(&store, "here").outputs(Arc::new(NeverChecked)).agent(own).build().unwrap())
        .await;
}
