//! Watchers receive every event once and in order, and cannot harm a run.

use serde_json::json;
use toolgate::core::lifecycle::Delta;
use toolgate::core::run::Status;
use toolgate::ports::Update;
use toolgate::runner::{Execution, Watch};

use super::world::{Kept, given_an_agent, on_every_store, results, say};

/// The names of the remaining updates of a watch, until its end.
pub(super) async fn everything(watch: &mut Watch) -> Vec<&'static str> {
    let mut seen = Vec::new();
    while let Some(update) = watch.next().await {
        seen.push(match update {
            Update::JournalEntry(recorded) => recorded.event.name(),
            Update::Delta { delta: Delta::Text { .. }, .. } => "llm.text.delta",
            Update::Delta { delta: Delta::Reasoning { .. }, .. } => "llm.reasoning.delta",
            Update::Delta { delta: Delta::Progress { .. }, .. } => "tool.mcp.progress",
        });
    }
    seen
}

on_every_store! {
    async fn a_watcher_sees_every_fact_once_in_order_and_the_fragments_between(kept: Kept) {
        let world = given_an_agent()
            .with_tools("files", &["read"])
            .where_servers(|servers| servers.report_progress("read", &[0.5, 1.0]))
            .whose_model_says(json!([
                {"calls": [{"name": "mcp_files_read"}]}, {"say": "Good.", "stream": {"fragments": 2}},
            ]))
            .kept(kept)
            .await;

        let mut execution = world.start().await;
        let seen = everything(&mut execution.updates).await;

        assert_eq!(
            seen,
            [
                "execution.started",
                "tools.listed",
                "llm.call.started",
                "llm.call.completed",
                "tool.tier.selected",
                "tool.checked",
                "tool.started",
                "tool.mcp.progress",
                "tool.mcp.progress",
                "tool.completed",
                "llm.call.started",
                "llm.text.delta",
                "llm.text.delta",
                "llm.call.completed",
                "execution.ended",
            ]
        );
        let report = execution.until_idle().await.unwrap();
        world.sink.was_told_everything(&report.run_id, report.version);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_of_a_waiting_run_sees_how_it_goes_on() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    let mut watch = world.runner.watch(&run);

    world.resume(&run, results([("call_1_1", json!("ordered"))])).await.unwrap();

    let facts = ["execution.resumed", "tool.completed", "llm.call.started", "llm.call.completed", "execution.ended"];
    assert_eq!(everything(&mut watch).await, facts);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_changes_nothing_for_its_run() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 100))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await;
    let Execution { run, .. } = world.start().await;

    world.runner.close().await;

    assert_eq!(world.runner.report(&run).await.unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_harms_no_run_and_still_sees_the_end() {
    let text = "x".repeat(10_000);
    let world =
        given_an_agent().whose_model_says(json!([{"say": text, "stream": {"fragments": 10_000}}])).ready().await;

    let mut execution = world.start().await;
    let run = execution.run.clone();
    world.runner.close().await;
    let seen = everything(&mut execution.updates).await;

    assert_eq!(world.runner.report(&run).await.unwrap().status, Status::Completed);
    assert!(seen.len() < 10_000, "nothing was missed: {}", seen.len());
    assert_eq!(seen.last(), Some(&"execution.ended"));
}
