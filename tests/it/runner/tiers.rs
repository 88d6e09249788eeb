//! Tiers: which calls of one reply run, how many at once, and in which order they are reported.

use serde_json::{Value, json};
use toolgate::core::run::{Event, Status};
use toolgate::core::tool::{FailureKind, Outcome, TierMode, ToolOutput};
use toolgate::runner::Report;

use super::world::{Given, World, answer_to, given_an_agent, said, say};

fn two_calls() -> Value {
    json!([{"calls": [{"name": "mcp_files_slow"}, {"name": "mcp_files_fast"}]}, say("Done.")])
}

fn slow_and_fast() -> Given {
    given_an_agent().with_tools("files", &["slow", "fast"]).where_servers(|servers| {
        servers.take_ms("slow", 300);
        servers.take_ms("fast", 100);
    })
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_tier_are_in_flight_together_and_told_in_call_order() {
    let world = slow_and_fast().whose_model_says(two_calls()).ready().await;
    let began = tokio::time::Instant::now();

    let report = world.run().await;

    assert_eq!((world.servers.most_in_flight(), began.elapsed().as_millis()), (2, 300));
    let landed: Vec<_> = world
        .runner
        .journal(&report.run_id)
        .await
        .unwrap()
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::CallCompleted { call, .. } => Some((call.to_string(), recorded.at.to_string())),
            _ => None,
        })
        .collect();
    let order = [("call_1_2", "2026-01-01T00:00:00.1Z"), ("call_1_1", "2026-01-01T00:00:00.3Z")];
    assert_eq!(landed, order.map(|(call, at)| (call.to_owned(), at.to_owned())));
    assert_eq!(
        said(&report)[1..5],
        [
            "model: call_1_1 = mcp_files_slow()",
            "model: call_1_2 = mcp_files_fast()",
            "user: call_1_1 -> slow done",
            "user: call_1_2 -> fast done",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_is_durable_while_a_slower_one_is_still_awaited() {
    let world = slow_and_fast().whose_model_says(two_calls()).ready().await;
    let execution = world.start().await;

    tokio::time::sleep(std::time::Duration::from_millis(200)).await;

    let journal = world.journal(&execution.run).await;
    assert_eq!(journal.iter().filter(|name| **name == "tool.completed").count(), 1);
    execution.until_idle().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failing_tool_and_a_panicking_call_do_not_harm_the_good_one_beside_them() {
    let world = given_an_agent()
        .with_tools("files", &["good", "bad", "dead", "panics"])
        .where_servers(|servers| {
            servers.answer("bad", Outcome::Returned(ToolOutput::error("no such file")));
            servers.answer("dead", Outcome::failed(FailureKind::Disconnected, "the server died"));
            servers.panic_in("panics");
        })
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_bad"}, {"name": "mcp_files_dead"}, {"name": "mcp_files_panics"},
                       {"name": "mcp_files_good"}]},
            say("Done."),
        ]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!(report.status, Status::Completed);
    assert_eq!(
        said(&report)[5..9],
        [
            "user: call_1_1 failed -> no such file",
            "user: call_1_2 failed -> the server died. The call may or may not have taken effect; check before you call it again.",
            "user: call_1_3 failed -> the code that made this call panicked; this is a bug in toolgate",
            "user: call_1_4 -> good done",
        ]
    );
}

fn two_tiers(mode: TierMode, then: Value) -> Given {
    let mut turns = vec![json!({"calls": [{"name": "mcp_files_later"}, {"name": "mcp_files_first"}]})];
    turns.push(then);
    turns.push(say("Done."));
    given_an_agent()
        .with_tools("files", &["later", "first"])
        .that(|agent| {
            agent.priorities = vec![("mcp_files_first".into(), 10)];
            agent.rules.tiers = mode;
        })
        .whose_model_says(Value::from(turns))
}

#[tokio::test(start_paused = true)]
async fn a_deferred_call_is_answered_and_runs_when_it_is_made_again() {
    let again = json!({"calls": [{"name": "mcp_files_later"}]});
    let world = two_tiers(TierMode::Defer, again).ready().await;

    let report = world.run().await;

    assert_eq!(world.servers.calls(), ["call_1_2", "call_2_1"]);
    assert_eq!(
        answer_to(&report, "call_1_1"),
        "deferred: calls of higher priority ran first; call again if still needed"
    );
    assert_eq!(answer_to(&report, "call_2_1"), "later done");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_was_never_made_as_far_as_the_model_knows() {
    let world = two_tiers(TierMode::Drop, say("Done.")).ready().await;

    let report = world.run().await;

    assert_eq!(world.servers.calls(), ["call_1_2"]);
    assert_eq!(
        said(&report),
        ["user: Hello", "model: call_1_2 = mcp_files_first()", "user: call_1_2 -> first done", "model: Done."]
    );
}

#[tokio::test(start_paused = true)]
async fn sequential_tiers_run_one_after_another_before_the_model_is_asked_again() {
    let world = two_tiers(TierMode::Sequential, say("Done."))
        .where_servers(|servers| {
            servers.take_ms("first", 100);
            servers.take_ms("later", 100);
        })
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!(
        (world.servers.calls(), world.servers.most_in_flight()),
        (vec!["call_1_2".into(), "call_1_1".into()], 1)
    );
    assert_eq!(said(&report)[3..], ["user: call_1_1 -> later done", "user: call_1_2 -> first done", "model: Done."]);
    assert_eq!(report.budget.iterations, 2);
}

fn write(path: &str) -> Value {
    json!({"name": "mcp_files_write", "arguments": {"path": path, "content": "x"}})
}

/// Servers whose calls take 100 ms, and the time that such a reply takes.
async fn time_of(calls: Value) -> (World, Report, u128) {
    let world = given_an_agent()
        .with_tools("files", &["write", "read"])
        .where_servers(|servers| {
            servers.take_ms("write", 100);
            servers.take_ms("read", 100);
        })
        .whose_model_says(json!([{"calls": calls}, say("Done.")]))
        .ready()
        .await;
    let began = tokio::time::Instant::now();
    let report = world.run().await;
    (world, report, began.elapsed().as_millis())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_changes_a_file_waits_for_the_calls_before_it_and_the_calls_after_it_wait_for_it() {
    let read = || json!({"name": "mcp_files_read"});

    let (world, report, took) =
        time_of(json!([read(), read(), write("a"), read(), read(), write("b"), write("a")])).await;

    assert_eq!((world.servers.most_in_flight(), took), (2, 500));
    assert_eq!(world.servers.calls()[2..], ["call_1_3", "call_1_4", "call_1_5", "call_1_6", "call_1_7"]);
    let started =
        world.runner.journal(&report.run_id).await.unwrap().into_iter().filter_map(|entry| match entry.event {
            Event::CallsStarted { calls } => Some(calls.len()),
            _ => None,
        });
    assert_eq!(started.collect::<Vec<_>>(), [2, 1, 2, 1, 1], "a call that waits has not started");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_no_file() {
    let dry = json!({"name": "mcp_files_write", "arguments": {"path": "a", "content": "x", "dryRun": true}});

    let (world, _, took) = time_of(json!([dry, dry])).await;

    assert_eq!((world.servers.most_in_flight(), took), (2, 100));
}
