//! Required servers: a run does not begin without them.

use serde_json::json;
use toolgate::core::error::ErrorCode;
use toolgate::core::run::Status;
use toolgate::runner::Fork;

use super::world::{Given, given_an_agent, say};
use crate::fakes::tool;

/// An agent with two servers, of which `shop` may be required.
fn a_clerk(required: bool) -> Given {
    given_an_agent().with_tools("files", &["read"]).with_tools("shop", &["order"]).that(|agent| {
        agent.required = if required { vec!["shop".into()] } else { Vec::new() };
    })
}

#[tokio::test(start_paused = true)]
async fn row_3_33_a_run_without_its_required_server_fails_before_a_model_is_called() {
    for (required, status, calls) in [(false, Status::Completed, 1), (true, Status::Failed, 0)] {
        let world = a_clerk(required).whose_model_says(json!([say("Done.")])).ready().await;
        world.servers.take_down("shop", "it did not start");

        let report = world.run().await;

        let asked = world.journal(&report.run_id).await.iter().filter(|event| **event == "llm.call.started").count();
        assert_eq!((report.status, asked), (status, calls));
        let error = report.error.map(|error| (error.code, error.message, error.retryable));
        let told = "server `shop` is required and not available: it did not start".to_owned();
        assert_eq!(error, required.then_some((ErrorCode::ToolUnavailable, told, true)));
    }
}

#[tokio::test(start_paused = true)]
async fn row_3_33_a_required_server_that_becomes_unavailable_later_does_not_end_the_run() {
    let turns = json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]);
    let world = a_clerk(true).whose_model_says(turns).ready().await;
    world.servers.take_ms("read", 1_000);
    let execution = world.start().await;
    while world.servers.calls().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    world.servers.take_down("shop", "it ended");

    let report = execution.until_idle().await.unwrap();

    let listings = world.journal(&report.run_id).await.iter().filter(|event| **event == "tools.listed").count();
    assert_eq!((report.status, listings), (Status::Completed, 2));
}

#[tokio::test(start_paused = true)]
async fn row_3_33_a_fork_of_such_a_run_lists_the_tools_again() {
    let world = a_clerk(true).whose_model_says(json!([say("Done.")])).ready().await;
    world.servers.take_down("shop", "it did not start");
    let source = world.run().await.run_id;
    let fork = async || world.runner.fork(&source, Fork::default()).await.unwrap().until_idle().await.unwrap();

    let early = fork().await;
    world.servers.tool_access("shop", tool("order"));
    let late = fork().await;

    assert_eq!((early.status, late.status), (Status::Failed, Status::Completed));
}
