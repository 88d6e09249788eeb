//! Forks of every ending with a message: the model is called again, and reads the message, within limits that the fork
//! names.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::chat::Message;
use toolgate::core::run::{Limits, OnToolError, Status, TighterLimits};
use toolgate::core::tool::{Outcome, ToolOutput};
use toolgate::runner::{Fork, Report};

use super::world::{Given, World, answer_to, decisions, given_an_agent, no, said, say};
use crate::fakes::tool;

/// An agent whose model calls this tool, and then answers in each turn.
fn calling(tool: &str) -> Given {
    given_an_agent()
        .whose_model_says(json!([{"calls": [{"name": tool}]}, say("Done."), say("More."), say("Even more.")]))
}

/// An agent whose model calls a tool that does not return.
fn hanging() -> Given {
    calling("mcp_files_hang").with_tools("files", &["hang"]).where_servers(|servers| servers.hang_in("hang"))
}

/// A run of that agent, cancelled while the call is in progress.
async fn cancelled_in_a_call(world: &World) -> Report {
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(world.servers.calls(), ["call_1_1"]);
    world.runner.cancel(&execution.run, None, None).await.unwrap();
    let source = execution.until_idle().await.unwrap();
    assert_eq!(source.status, Status::Cancelled);
    source
}

/// A fork with a message, and with fewer corrections than its source had.
async fn told(world: &World, source: &Report) -> Report {
    let limits = TighterLimits { max_corrections: Some(0), ..TighterLimits::default() };
    let fork = Fork { message: Some(Message::user("Look again")), limits, ..Fork::default() };
    world.runner.fork(&source.run_id, fork).await.unwrap().until_idle().await.unwrap()
}

fn assert_heard(fork: &Report) {
    let said = said(fork);
    let message = said.iter().position(|line| line == "user: Look again");
    let reply = said.iter().rposition(|line| line.starts_with("model: "));
    assert!(message.is_some() && message < reply, "{said:#?}");
    assert_eq!((fork.status, fork.budget.limits.max_corrections), (Status::Completed, 0), "{:?}", fork.error);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_cancelled_in_a_call_says_what_was_in_doubt() {
    let world = hanging().ready().await;
    let source = cancelled_in_a_call(&world).await;

    let fork = told(&world, &source).await;

    assert_heard(&fork);
    assert!(answer_to(&fork, "call_1_1").starts_with("Outcome unknown: the call was sent"), "{:#?}", said(&fork));
    assert_eq!(world.servers.calls(), ["call_1_1"], "it is not sent a second time");
}

#[tokio::test(start_paused = true)]
async fn a_doubt_of_its_source_does_not_end_a_fork_that_fails_on_tool_errors() {
    let world = hanging().that(|agent| agent.rules.on_tool_error = OnToolError::Fail).ready().await;
    let source = cancelled_in_a_call(&world).await;

    let fork = told(&world, &source).await;

    assert_heard(&fork);
    assert!(answer_to(&fork, "call_1_1").starts_with("Outcome unknown"), "{:#?}", said(&fork));
    assert_eq!(world.servers.calls(), ["call_1_1"], "it is not sent a second time");
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_cancelled_while_it_asks_a_person_asks_again() {
    let world = calling("ext_order").with_an_external_tool("order").ready().await;
    let run = world.run().await.run_id;
    let source = world.runner.cancel(&run, None, None).await.unwrap();

    let fork = told(&world, &source).await;

    assert_eq!((fork.status, fork.pending.len()), (Status::Pending, 1));
    let done = world.resume(&fork.run_id, super::world::results([("call_1_1", json!("tea"))])).await.unwrap();
    assert_heard(&done);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_whose_tool_failed_hears_its_message() {
    let broken = Outcome::Returned(ToolOutput::error("no such file"));
    let world = calling("mcp_files_read")
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.answer("read", broken))
        .that(|agent| agent.rules.on_tool_error = OnToolError::Fail)
        .ready()
        .await;
    let source = world.run().await;
    assert_eq!(source.error.as_ref().unwrap().code.as_str(), "tool_failed");

    let fork = told(&world, &source).await;

    assert_heard(&fork);
    assert_eq!((answer_to(&fork, "call_1_1"), world.servers.calls().len()), ("no such file".into(), 1));
}

#[tokio::test(start_paused = true)]
async fn row_3_33_a_fork_of_a_run_without_its_required_server_hears_its_message() {
    let world = given_an_agent()
        .with_tools("shop", &["order"])
        .that(|agent| agent.required = vec!["shop".into()])
        .whose_model_says(json!([say("Done.")]))
        .ready()
        .await;
    world.servers.take_down("shop", "it did not start");
    let source = world.run().await;
    assert_eq!(source.error.as_ref().unwrap().code.as_str(), "tool_unavailable");
    world.servers.tool_access("shop", tool("order"));

    assert_heard(&told(&world, &source).await);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_of_unusable_calls_hears_its_message() {
    let world = calling("rm").within(Limits { max_corrections: 0, ..Limits::default() }).ready().await;
    let source = world.run().await;
    assert_eq!(source.error.as_ref().unwrap().code.as_str(), "tool_failed");

    assert_heard(&told(&world, &source).await);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_at_its_deadline_hears_its_message() {
    let world = hanging().within(Limits { deadline_s: Some(60), ..Limits::default() }).ready().await;
    let source = world.run().await;
    assert_eq!(source.error.as_ref().unwrap().code.as_str(), "deadline_exceeded");

    let fork = told(&world, &source).await;

    assert_heard(&fork);
    assert!(answer_to(&fork, "call_1_1").starts_with("Outcome unknown"), "{:#?}", said(&fork));
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_at_any_hard_limit_replies_to_its_last_word() {
    let turn = |text: &str| json!({"say": text, "usage": {"input_tokens": 90, "output_tokens": 10, "cost_usd": 0.5}});
    let look = json!({"calls": [{"name": "mcp_files_read"}], "usage": {"input_tokens": 90, "output_tokens": 10, "cost_usd": 0.5}});
    let cost = serde_json::from_value(json!(0.6)).unwrap();
    for limits in [
        Limits { max_tokens: Some(150), ..Limits::default() },
        Limits { max_cost_usd: Some(cost), ..Limits::default() },
        Limits { max_iterations: 2, ..Limits::default() },
    ] {
        let world = given_an_agent()
            .with_tools("files", &["read"])
            .within(limits)
            .whose_model_says(Value::from(vec![look.clone(), look.clone(), turn("So far."), turn("All.")]))
            .ready()
            .await;
        let source = world.run().await;
        assert_eq!((source.status, source.output.as_ref().unwrap().text.as_str()), (Status::Incomplete, "So far."));

        let fork = told(&world, &source).await;

        let lines = said(&fork);
        assert_eq!(lines[lines.len() - 3..], ["model: So far.", "user: Look again", "model: All."]);
        assert_heard(&fork);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_with_its_own_limits_begins_where_they_let_it_go_on() {
    let world = calling("mcp_files_read")
        .with_tools("files", &["read"])
        .whose_policy_says(toolgate::core::policy::Verdict::Ask, "*_read")
        .ready()
        .await;
    let run = world.run().await.run_id;
    let source = world.resume(&run, decisions([("call_1_1", no("not now"))])).await.unwrap();
    assert_eq!(source.status, Status::Completed);
    let limits = TighterLimits {
        max_mcp_calls: Some(0),
        max_tool_interactions: Some(0),
        max_corrections: Some(0),
        ..TighterLimits::default()
    };

    let fork = world.runner.fork(&run, Fork { limits, ..Fork::default() }).await.unwrap().until_idle().await.unwrap();

    assert_eq!(fork.status, Status::Completed, "{:?}", fork.error);
}
