//! What the model gets wrong and can mend: it reads what is wrong, and has a few attempts.

use serde_json::json;
use toolgate::core::error::ErrorCode;
use toolgate::core::run::{Limits, Status};
use toolgate::core::tool::McpTool;

use super::world::{Given, answer_to, given_an_agent, said, say};
use crate::fakes::tool;

fn reader() -> Given {
    let schema = json!({"type": "object", "required": ["path"]});
    given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.offer("files", McpTool { input_schema: schema, ..tool("read") }))
        .that_checks_arguments()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_exist_is_answered_and_the_run_goes_on() {
    let world = reader()
        .whose_model_says(json!([{"calls": [{"name": "rm"}]}, {"expect": {"contains": "`rm`"}, "say": "Sorry."}]))
        .ready()
        .await;

    let report = world.run().await;

    let told = "Tool does not exist: `rm`. Call one of the tools you were given.";
    assert_eq!((report.status, answer_to(&report, "call_1_1")), (Status::Completed, told.into()));
}

#[tokio::test(start_paused = true)]
async fn invalid_and_malformed_arguments_are_told_and_mended() {
    let world = reader()
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_read"}, {"name": "mcp_files_read", "arguments": "{\"pa"}]},
            {"expect": {"contains": "is missing"}, "calls": [{"name": "mcp_files_read", "arguments": {"path": "a"}}]},
            say("Done."),
        ]))
        .ready()
        .await;

    let report = world.run().await;

    assert!(answer_to(&report, "call_1_1").contains("\"rule\":\"required\""), "{:#?}", said(&report));
    assert!(answer_to(&report, "call_1_2").contains("not a JSON object: {\\\"pa"), "{:#?}", said(&report));
    assert_eq!(world.servers.calls(), ["call_2_1"]);
    assert_eq!((report.status, report.budget.corrections), (Status::Completed, 0));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_mends_nothing_is_stopped_after_its_corrections() {
    let turns: Vec<_> = (0..5).map(|_| json!({"calls": [{"name": "mcp_files_read"}]})).collect();
    let limits = Limits { max_corrections: 2, ..Limits::default() };
    let world = reader().within(limits).whose_model_says(json!(turns)).ready().await;

    let report = world.run().await;

    assert_eq!((report.error.unwrap().code, report.budget.iterations), (ErrorCode::ToolFailed, 3));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_answer_is_told_costs_an_interaction_and_is_mended() {
    let world = given_an_agent()
        .that_checks_answers()
        .whose_model_says(json!([say("forty-two"), {"expect": {"contains": "not JSON"}, "say": "42"}]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!(report.output.unwrap().value, Some(json!(42)));
    assert_eq!((report.status, report.tool_interactions), (Status::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_model_whose_answer_never_becomes_valid_fails_the_run() {
    let turns: Vec<_> = (0..9).map(|_| say("forty-two")).collect();
    let world = given_an_agent().that_checks_answers().whose_model_says(json!(turns)).ready().await;

    let report = world.run().await;

    assert_eq!((report.error.unwrap().code, report.budget.iterations), (ErrorCode::Validation, 4));
}
