//! A fork is a run of its own that shares a past.

use std::time::Duration;

use serde_json::json;
use toolgate::core::chat::Message;
use toolgate::core::policy::Verdict;
use toolgate::core::run::Status;
use toolgate::runner::RunnerError;

use super::world::{Kept, answer_to, decisions, given_an_agent, on_every_store, results, said, say, yes};

on_every_store! {
    async fn a_fork_at_the_end_goes_on_with_a_new_message_and_leaves_its_source_alone(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([say("One."), say("Two.")])).kept(kept).await;
        let source = world.run().await;

        let message = Some(Message::user("And?"));
        let fork = world.runner.fork(&source.run_id, None, message).await.unwrap().rest().await.unwrap();

        assert_eq!(said(&fork), ["user: Hello", "model: One.", "user: And?", "model: Two."]);
        let untouched = world.runner.report(&source.run_id).await.unwrap();
        assert_eq!((untouched.version, untouched.messages), (source.version, source.messages));
        assert_ne!(fork.run_id, source.run_id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_at_a_position_decides_again_from_there() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, {"say": "It says: {{last_result}}."}]))
        .ready()
        .await;
    let source = world.run().await;
    world.resume(&source.run_id, results([("call_1_1", json!("tea"))])).await.unwrap();

    let fork = world.runner.fork(&source.run_id, Some(source.version), None).await.unwrap().rest().await.unwrap();
    let report = world.resume(&fork.run_id, results([("call_1_1", json!("coffee"))])).await.unwrap();

    assert_eq!((fork.status, fork.pending), (Status::Pending, source.pending));
    assert_eq!(report.output.unwrap().text, "It says: coffee.");
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_in_the_source_is_not_made_again_in_the_fork() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 1000))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await;
    let execution = world.start().await;
    tokio::time::sleep(Duration::from_millis(100)).await;

    let fork = world.runner.fork(&execution.run, None, None).await.unwrap().rest().await.unwrap();

    assert!(answer_to(&fork, "call_1_1").starts_with("Outcome unknown"));
    assert_eq!(answer_to(&execution.rest().await.unwrap(), "call_1_1"), "read done");
    assert_eq!(world.servers.calls(), ["call_1_1"]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_tells_its_watchers_of_the_copied_past_as_of_a_past() {
    let world = given_an_agent().whose_model_says(json!([say("One."), say("Two.")])).ready().await;
    let source = world.run().await;

    let message = Some(Message::user("And?"));
    let mut execution = world.runner.fork(&source.run_id, None, message).await.unwrap();

    let seen = super::watching::everything(&mut execution.updates).await;
    assert_eq!(seen[..2], ["execution.resumed", "message.added"]);
    let fork = execution.rest().await.unwrap();
    world.sink.was_told_everything(&fork.run_id, fork.version);
}

#[tokio::test(start_paused = true)]
async fn there_is_no_fork_before_the_beginning_or_after_the_end() {
    let world = given_an_agent().whose_model_says(json!([say("One.")])).ready().await;
    let run = world.run().await.run_id;
    for at in [0, 5, 6] {
        let error = world.runner.fork(&run, Some(at), None).await.unwrap_err();
        assert_eq!(error, RunnerError::NoSuchPosition { run: run.clone(), length: 5, at });
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_that_was_not_spent_yet_is_not_spent_by_a_fork() {
    let world = given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "*_delete")
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Gone.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    world.resume(&run, decisions([("call_1_1", yes())])).await.unwrap();
    let decided = world.journal(&run).await.iter().position(|name| *name == "approval.decided").unwrap() as u64;

    let fork = world.runner.fork(&run, Some(decided + 1), None).await.unwrap().rest().await.unwrap();

    assert_eq!((fork.status, fork.pending.len()), (Status::Pending, 1));
    assert_eq!(world.servers.calls(), ["call_1_1"]);
}
