//! Service without a surface: a process that serves no HTTP.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate::core::run::Status;
use toolgate::core::tool::ExternalTool;
use toolgate::runner::{AgentRunner, Request};
use toolgate::service::{Service, Worker};
use toolgate::stores::MemoryStore;

use crate::runner::world::{given_an_agent, say};

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
