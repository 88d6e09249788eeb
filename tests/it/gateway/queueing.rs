//! Run queue: runs over the concurrency limit wait, durable and owned, and a full queue refuses new runs.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use toolgate::core::id::RunId;
use toolgate::core::policy::Policy;
use toolgate::core::run::{Event, Status};
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::runner::{Activity, Agent, AgentRunner, Answer, Capacity, Execution, Request, Resume};
use toolgate::stores::MemoryStore;

use super::served::HttpAnswer;
use super::test_site::{Site, until};

pub(super) fn agent(turns: &Value) -> Agent {
    let script = Script::from_json(&json!({"turns": turns}).to_string()).unwrap();
    let model = Arc::new(ScriptedModel::new("scripted", script));
    Agent { policy: Arc::new(Policy::allow_always()), ..Agent::new("clerk", model) }
}

fn runner(turns: &Value, capacity: Capacity) -> AgentRunner {
    AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent(turns)).capacity(capacity).build().unwrap()
}

const ONE_AT_A_TIME: Capacity = Capacity { driven: 1, driven_per_tenant: usize::MAX, waiting: 2 };

async fn started_for(runner: &AgentRunner, tenant: &str) -> Execution {
    let request = Request { tenant: tenant.into(), ..Request::new("clerk", "Hello") };
    runner.start(request).await.unwrap()
}

async fn is_asking(runner: &AgentRunner, run: &RunId) -> bool {
    let journal = runner.journal(run).await.unwrap();
    journal.iter().any(|recorded| matches!(recorded.event, Event::ModelCalled { .. }))
}

#[tokio::test]
async fn a_queued_run_is_durable_and_idle() {
    let runner = runner(&json!([{"hang": true}]), ONE_AT_A_TIME);
    let first = started_for(&runner, "a").await;
    let second = started_for(&runner, "a").await;
    let other = started_for(&runner, "b").await;
    until(async || is_asking(&runner, &first.run).await).await;

    assert_eq!(runner.activity(), Activity { driven: 1, waiting: 2 });
    assert!(!is_asking(&runner, &second.run).await, "one at a time");
    runner.cancel(&first.run, None, None).await.unwrap();
    until(async || is_asking(&runner, &second.run).await).await;
    assert!(!is_asking(&runner, &other.run).await);
    runner.cancel(&second.run, None, None).await.unwrap();
    until(async || is_asking(&runner, &other.run).await).await;
    runner.cancel(&other.run, None, None).await.unwrap();
    assert_eq!(other.until_idle().await.unwrap().status, Status::Cancelled);
    assert_eq!(runner.activity(), Activity::default());
}

#[tokio::test]
async fn a_queued_run_is_cancelled_at_once_and_frees_its_place() {
    let runner = runner(&json!([{"hang": true}]), ONE_AT_A_TIME);
    let first = started_for(&runner, "a").await;
    let waits = started_for(&runner, "a").await;

    let cancelled = runner.cancel(&waits.run, None, None).await.unwrap();

    assert_eq!(cancelled.status, Status::Cancelled);
    let rested = tokio::time::timeout(Duration::from_secs(5), waits.until_idle()).await.expect("cancelled at once");
    assert_eq!(rested.unwrap().status, Status::Cancelled);
    assert_eq!(runner.activity(), Activity { driven: 1, waiting: 0 });
    runner.cancel(&first.run, None, None).await.unwrap();
}

#[tokio::test]
async fn a_full_queue_refuses_new_runs_and_resumes_known_ones() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, {"hang": true}]);
    let runner = runner(&turns, Capacity { driven: 1, driven_per_tenant: 1, waiting: 1 });
    let site = Site::over(runner).await;
    let tool = json!({"name": "lookup", "input_schema": {"type": "object"}});
    let new = json!({"input": "Hello", "external_tools": [tool]});
    let pending = site.post("/v1/runs", new.clone()).await;
    assert_eq!(pending.text("status"), "pending", "{pending:?}");
    let resume = |pending: &HttpAnswer| {
        let call = pending.body["pending"][0]["call_id"].as_str().unwrap();
        (RunId::from(pending.text("id")), Resume::default().with(call, Answer::output(1)))
    };
    let other = site.post("/v1/runs", new.clone()).await;
    let (run, resumed) = resume(&pending);
    let runner = &site.runner;
    runner.resume_run(&run, toolgate::core::run::Input::Resume(resumed), None).await.unwrap();
    let (waits, resumed) = resume(&other);
    runner.resume_run(&waits, toolgate::core::run::Input::Resume(resumed), None).await.unwrap();
    until(async || runner.activity() == Activity { driven: 1, waiting: 1 }).await;

    let refused = site.post("/v1/runs", new).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (503, "unavailable"));
    assert_eq!(refused.headers.get("retry-after"), Some(&HeaderValue::from_static("5")));
    assert_eq!(refused.body["retryable"], true);
    runner.cancel(&run, None, None).await.unwrap();
    runner.cancel(&waits, None, None).await.unwrap();
}
