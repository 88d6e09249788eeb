//! Spans of the time that belongs to no model and to no tool: waits for admission and for servers, and the time until an
//! execution was interrupted.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use toolgate::core::id::{ModelName, RunId};
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Event, JournalEntry, ServerWait};
use toolgate::core::tool::ToolCall;
use toolgate::runner::DrainTimes;
use toolgate::telemetry::spans::{Kind, Span, SpanContent, Status, Value, project};

use super::journals::Journal;
use super::spans::{START, attribute, named, spans, text};
use crate::runner::world::{World, decisions, given_an_agent, say, yes};

/// The longest stretch of an execution that no span explains, in milliseconds.
const UNEXPLAINED: i128 = 50;

async fn spans_of(world: &World, run: &RunId) -> Vec<Span> {
    of_journal(run, &world.runner.journal(run).await.unwrap())
}

fn of_journal(run: &RunId, journal: &[JournalEntry]) -> Vec<Span> {
    project(run, journal, SpanContent::default(), Arc::new(|_: &ModelName| None))
}

fn ms(span: &Span) -> i128 {
    span.end.duration_since(span.start).as_millis()
}

/// The name and the duration of each span below a root.
fn durations(spans: &[Span]) -> Vec<(&str, i128)> {
    spans.iter().filter(|span| span.parent.is_some()).map(|span| (span.name.as_str(), ms(span))).collect()
}

/// The longest stretch of each execution that is covered by no span below its root.
fn gaps(spans: &[Span]) -> Vec<i128> {
    let roots = spans.iter().filter(|span| span.parent.is_none_or(|parent| parent.remote));
    let gap = |root: &Span| {
        let mut children: Vec<&Span> =
            spans.iter().filter(|span| span.trace == root.trace && span.id != root.id).collect();
        children.sort_by_key(|span| span.start);
        let (mut covered, mut longest): (Timestamp, i128) = (root.start, 0);
        for (start, end) in children.iter().map(|span| (span.start, span.end)).chain([(root.end, root.end)]) {
            longest = longest.max(start.duration_since(covered).as_millis());
            covered = covered.max(end);
        }
        longest
    };
    roots.map(gap).collect()
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_admission_is_no_latency_of_a_server() {
    let turns = json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]);
    let given = given_an_agent().with_tools("files", &["read"]).whose_model_says(turns).at_most(1);
    let world = given.where_servers(|servers| servers.take_ms("read", 700)).ready().await;
    let (first, second) = (world.start().await, world.start().await);
    let run = second.run.clone();
    first.until_idle().await.unwrap();
    second.until_idle().await.unwrap();

    let told = spans_of(&world, &run).await;

    let expected = [
        ("admission", 700),
        ("tools/list files", 0),
        ("chat scripted", 0),
        ("execute_tool mcp_files_read", 700),
        ("chat scripted", 0),
    ];
    assert_eq!(durations(&told), expected);
    assert_eq!(attribute(named(&told, "admission"), "toolgate.wait_ms"), Some(&Value::Int(700)));
    assert_eq!(gaps(&told), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_execution_waits_for_admission_too() {
    let turns = json!([{"calls": [{"id": "w", "name": "mcp_web_get"}]}, say("Done."), say("Never mind.")]);
    let given = given_an_agent().with_tools("web", &["get"]).whose_model_says(turns).at_most(1);
    let world = given.whose_policy_says(Verdict::Ask, "mcp_web_get").ready().await;
    let pending = world.run().await;
    world.servers.list_in_ms("web", 400);
    let other = world.start().await;
    world.resume(&pending.run_id, decisions([("w", yes())])).await.unwrap();
    other.until_idle().await.unwrap();

    let told = spans_of(&world, &pending.run_id).await;

    let second = told.iter().position(|span| span.parent.is_none()).unwrap() + 1;
    let expected = [("approval", 0), ("admission", 400), ("execute_tool mcp_web_get", 0), ("chat scripted", 0)];
    assert_eq!(durations(&told[second..]), expected);
    assert_eq!(gaps(&told), [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_left_the_queue_before_its_admission_only_waited_for_it() {
    for cancels in [true, false] {
        let turns = json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]);
        let given = given_an_agent().with_tools("files", &["read"]).whose_model_says(turns).at_most(1);
        let world = given.where_servers(|servers| servers.hang_in("read")).ready().await;
        let (_first, second) = (world.start().await, world.start().await);
        tokio::time::sleep(Duration::from_millis(600)).await;
        if cancels {
            world.runner.cancel(&second.run, None, None).await.unwrap();
        } else {
            world.runner.drain(DRAIN).await;
        }

        let told = spans_of(&world, &second.run).await;

        assert_eq!(durations(&told), [("admission", 600)], "{cancels}");
        let root = named(&told, "invoke_agent clerk");
        assert_eq!((ms(root), &root.status), (600, &Status::Ok));
    }
}

#[tokio::test(start_paused = true)]
async fn each_server_has_a_span_with_its_own_time() {
    let given = given_an_agent().with_tools("files", &["read"]).with_tools("web", &["get"]);
    let world = given.whose_model_says(json!([say("Done.")])).ready().await;
    world.servers.list_in_ms("web", 300);
    let report = world.run().await;

    let told = spans_of(&world, &report.run_id).await;

    assert_eq!(durations(&told), [("tools/list files", 0), ("tools/list web", 300), ("chat scripted", 0)]);
    let listed = named(&told, "tools/list web");
    assert_eq!((listed.kind, text(listed, "toolgate.listing.server")), (Kind::Client, "web"));
    assert_eq!(text(listed, "output.value"), r#"{"tools":["mcp_web_get"],"skipped":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_execution_has_spans_of_the_servers_that_it_waited_for() {
    let turns = json!([{"calls": [{"id": "w", "name": "mcp_web_get"}]}, say("Done.")]);
    let given = given_an_agent().with_tools("files", &["read"]).with_tools("web", &["get"]).whose_model_says(turns);
    let world = given.whose_policy_says(Verdict::Ask, "mcp_web_get").ready().await;
    let pending = world.run().await;
    world.servers.list_in_ms("web", 1100);

    let resumed = world.another_process().await;
    resumed.resume(&pending.run_id, decisions([("w", yes())])).await.unwrap();

    let told = spans_of(&world, &pending.run_id).await;
    let second = told.iter().rposition(|span| span.parent.is_none()).unwrap();
    let first = told.iter().position(|span| span.parent.is_none()).unwrap();
    let again = durations(&told[first + 1..second]);
    let expected = [("approval", 0), ("tools/list web", 1100), ("execute_tool mcp_web_get", 0), ("chat scripted", 0)];
    assert_eq!(again, expected, "the other server listed its tools at once");
    assert!(gaps(&told).iter().all(|gap| *gap <= UNEXPLAINED), "{:?}", gaps(&told));
}

#[test]
fn a_connection_that_was_opened_has_its_part_of_the_time() {
    let mut journal = Journal::start("connected", 41, START, |_| {});
    let wait = |server: &str, ms, connect_ms, error: Option<&str>| ServerWait {
        server: server.into(),
        since: journal.now,
        ms,
        connect_ms,
        error: error.map(str::to_owned),
    };
    let waits = vec![wait("weather", 400, Some(350), None), wait("files", 200, None, Some("files is away"))];
    journal.now += Duration::from_millis(400);
    journal.then(Event::Waited { waits });
    journal.lists_tools();
    journal.model_says("Hello.");
    journal.completes("Hello.");

    let told = spans(&journal, SpanContent::default());

    let opened = named(&told, "initialize weather");
    assert_eq!((ms(opened), &opened.status), (400, &Status::Ok));
    assert_eq!(attribute(opened, "toolgate.listing.connect_ms"), Some(&Value::Int(350)));
    assert_eq!(text(opened, "mcp.method.name"), "initialize");
    let failed = named(&told, "tools/list files");
    assert_eq!((ms(failed), &failed.status), (200, &Status::Error("files is away".into())));
    assert_eq!(text(failed, "error.type"), "unavailable");
}

/// The execution stops 300 ms after its start, and 400 ms later its step.
const DRAIN: DrainTimes = DrainTimes { rest: Duration::from_millis(300), step: Duration::from_millis(400) };

#[tokio::test(start_paused = true)]
async fn an_execution_cut_by_a_drain_ends_when_it_ended() {
    let turns = json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]);
    let given = given_an_agent().with_tools("files", &["read"]).whose_model_says(turns);
    let world = given.where_servers(|servers| servers.hang_in("read")).ready().await;
    let run = world.start().await.run;
    assert_eq!(world.runner.drain(DRAIN).await, 1, "the call was aborted");
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.another_process().await.recover().await.unwrap().remove(0).until_idle().await.unwrap();

    let told = spans_of(&world, &run).await;

    let [cut, root] = ["execute_tool mcp_files_read", "invoke_agent clerk"].map(|name| named(&told, name));
    assert_eq!((ms(cut), text(cut, "error.type")), (700, "interrupted"));
    assert_eq!((ms(root), text(root, "toolgate.run.outcome")), (700, "interrupted"));
    assert_eq!(root.status, Status::Ok);
    assert_eq!(gaps(&told)[0], 0);
}

#[test]
fn a_call_cut_by_a_kill_has_the_time_until_its_process_was_last_alive() {
    let mut journal = Journal::start("killed", 42, START, |_| {});
    journal.lists_tools();
    journal.model_calls([ToolCall::new("call_o", "mcp_weather_today", json!({ "city": "Oslo" }))]);
    journal.selects(0, &["call_o"], &[]);
    journal.allows("call_o");
    journal.sends(&["call_o"]);
    let sent = journal.events.last().unwrap().at;
    let alive_at = sent + Duration::from_millis(3200);
    journal.now = sent + Duration::from_secs(15);
    journal.then(Event::Interrupted { alive_at: Some(alive_at) });
    journal.resumes();

    let told = spans(&journal, SpanContent::default());

    let [cut, root] = ["execute_tool mcp_weather_today", "invoke_agent assistant"].map(|name| named(&told, name));
    assert_eq!((cut.end, root.end), (alive_at, alive_at));
    assert_eq!((text(cut, "error.type"), text(root, "toolgate.run.outcome")), ("interrupted", "interrupted"));
}
