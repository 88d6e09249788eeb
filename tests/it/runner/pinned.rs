//! Pinned arguments of tools (row 3.46): neither the model nor an approver sets them, and other values are another tool.

use serde_json::{Value, json};
use toolgate::core::error::ErrorCode;
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Decision, Scope, Status};
use toolgate::core::tool::{Arguments, McpTool, PinnedArguments};

use super::world::{Given, answer_to, decisions, given_an_agent, say, yes};
use crate::fakes::tool;

/// A tool whose argument `region` is pinned.
fn create(fingerprint: &str) -> McpTool {
    let pinned = PinnedArguments { names: vec!["region".into()], fingerprint: fingerprint.into() };
    McpTool { pinned: Some(pinned), ..tool("create") }
}

fn creating(arguments: Value) -> Given {
    given_an_agent()
        .with_tools("cloud", &["create"])
        .where_servers(|servers| servers.tool_access("cloud", create("sha256:eu")))
        .whose_model_says(json!([{"calls": [{"name": "mcp_cloud_create", "arguments": arguments}]}, say("Done.")]))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_names_a_pinned_argument_is_rejected() {
    let world = creating(json!({"region": "us"})).ready().await;

    let report = world.run().await;

    let read = answer_to(&report, "call_1_1");
    assert!(read.contains("`region` is set by the operator; leave it out"), "{read}");
    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec![]));
}

#[tokio::test(start_paused = true)]
async fn edited_arguments_with_a_pinned_argument_are_refused() {
    let world = creating(json!({})).whose_policy_says(Verdict::Ask, "*_create").ready().await;
    let waiting = world.run().await;
    let edited = json!({"region": "us"}).as_object().unwrap().clone();
    let edit = Decision { edited_arguments: Some(Arguments::Object(edited)), ..yes() };

    let refused = world.resume(&waiting.run_id, decisions([("call_1_1", edit)])).await.unwrap_err();

    assert_eq!(refused.code(), ErrorCode::Validation, "{refused}");
    assert!(refused.to_string().contains("`region` is set by the operator"), "{refused}");
    assert_eq!(world.servers.calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn another_pinned_value_voids_an_approval() {
    let world = creating(json!({})).whose_policy_says(Verdict::Ask, "*_create").ready().await;
    let waiting = world.run().await;
    world.servers.tool_access("cloud", create("sha256:us"));

    let again = world.resume(&waiting.run_id, decisions([("call_1_1", yes())])).await.unwrap();

    assert_eq!((again.status, world.servers.calls()), (Status::Pending, vec![]), "the call drifted");
}

#[tokio::test(start_paused = true)]
async fn another_pinned_value_voids_a_grant() {
    let world = creating(json!({})).whose_policy_says(Verdict::Ask, "*_create").ready().await;
    let waiting = world.run().await;
    let always = Decision { scope: Scope::Always, ..yes() };
    world.resume(&waiting.run_id, decisions([("call_1_1", always)])).await.unwrap();
    assert_eq!(world.run().await.status, Status::Completed, "the grant covers this value");

    world.servers.tool_access("cloud", create("sha256:us"));

    assert_eq!(world.run().await.status, Status::Pending, "and no other");
}
