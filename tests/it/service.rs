//! Service without a surface: a process that serves no HTTP.

mod late_joining;
mod retention;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate::core::run::{Channel, Status};
use toolgate::core::tool::ExternalTool;
use toolgate::runner::{AgentRunner, Request};
use toolgate::service::{FollowSettings, Operator, RunEvent, Service, StreamItem, Worker, events_of};
use toolgate::stores::MemoryStore;

use crate::runner::world::{given_an_agent, results, say};

const POLL: Duration = Duration::from_millis(20);

#[tokio::test(start_paused = true)]
async fn an_operator_follows_a_run_that_another_process_resumes() {
    let turns = json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]);
    let world = given_an_agent().with_an_external_tool("order").whose_model_says(turns).ready().await;
    let report = world.run().await;
    let (run, item) = (&report.run_id, &report.pending[0]);
    let operator = Operator::new(world.another_process().await, Channel::CommandLine);
    let mut stream = operator.follow(run, None, None, FollowSettings::polling_every(POLL));
    let mut followed: Vec<RunEvent> = Vec::new();
    while let Some(event) = stream.next_up_to(report.version).await.unwrap() {
        followed.push(event);
    }
    assert_eq!(followed, events_of(run, &world.runner.journal(run).await.unwrap()), "the events so far");

    let answer = results([("call_1_1", json!("ordered"))]);
    let (settled, resumed) = tokio::join!(operator.settled(run, item, POLL), world.resume(run, answer));

    let ended = resumed.unwrap();
    assert!(report.version < settled && settled <= ended.version, "{settled}");
    while let Some(StreamItem::Event(event)) = stream.next().await.unwrap() {
        followed.extend(event.id.is_some().then_some(*event));
    }
    assert_eq!(followed, events_of(run, &world.runner.journal(run).await.unwrap()));
}

#[tokio::test]
async fn a_worker_without_http_expires_items_and_ends_with_its_service() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Then not.")]);
    let agent = given_an_agent().whose_model_says(turns).agent();
    let runner = AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent).build().unwrap();
    let service = Service::new(runner.clone());
    let worker = Worker::begin(&service).unwrap();
    let tool = json!({"name": "lookup", "input_schema": {"type": "object"}, "deadline_s": 1});
    let tool: ExternalTool = serde_json::from_value(tool).unwrap();

    let report = runner.execute(Request::new("clerk", "Hello").external_tool(tool)).await.unwrap();

    assert_eq!(report.status, Status::Pending);
    let resumed = async {
        while runner.report(&report.run_id).await.unwrap().status != Status::Completed {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), resumed).await.unwrap();
    service.stop();
    worker.end().await;
}
