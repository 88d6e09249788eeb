//! Runs without pending items: the model answers, with or without MCP tools.

use serde_json::json;
use toolgate::core::lifecycle::Delta;
use toolgate::core::run::Status;
use toolgate::runner::{Request, RunnerError};

use super::world::{Kept, given_an_agent, on_every_store, said, say};

on_every_store! {
    async fn an_answer_without_tools_is_five_facts(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([say("Good day.")])).kept(kept).await;

        let report = world.run().await;

        let facts =
            ["execution.started", "tools.listed", "llm.call.started", "llm.call.completed", "execution.ended"];
        assert_eq!(world.journal(&report.run_id).await, facts);
        assert_eq!(said(&report), ["user: Hello", "model: Good day."]);
        assert_eq!((report.status, report.output.unwrap().text), (Status::Completed, "Good day.".into()));
        assert_eq!((report.version, report.tool_interactions), (5, 0));
    }

    async fn a_tool_runs_inside_and_its_result_reaches_the_model(kept: Kept) {
        let world = given_an_agent()
            .with_tools("files", &["read"])
            .whose_model_says(json!([
                {"say": "Let me look.", "calls": [{"name": "mcp_files_read", "arguments": {"path": "a"}}]},
                {"expect": {"contains": "read done"}, "say": "It says: {{last_result}}."},
            ]))
            .kept(kept)
            .await;

        let report = world.run().await;

        assert_eq!(world.servers.arguments_of("call_1_1"), json!({"path": "a"}));
        assert_eq!(
            said(&report),
            [
                "user: Hello",
                "model: Let me look.",
                "model: call_1_1 = mcp_files_read()",
                "user: call_1_1 -> read done",
                "model: It says: read done.",
            ]
        );
        assert_eq!(
            world.journal(&report.run_id).await,
            [
                "execution.started",
                "tools.listed",
                "llm.call.started",
                "llm.call.completed",
                "tool.tier.selected",
                "tool.checked",
                "tool.started",
                "tool.completed",
                "llm.call.started",
                "llm.call.completed",
                "execution.ended",
            ]
        );
        assert_eq!((report.tool_interactions, world.servers.released()), (1, vec!["run_1".to_owned()]));
        let run = world.runner.load(&report.run_id).await.unwrap();
        assert_eq!(world.servers.release_contexts(), [run.execution_context()], "row 2.57");
    }
}

#[tokio::test(start_paused = true)]
async fn streaming_changes_what_is_shown_and_not_what_is_journaled() {
    let turns = |stream: Option<_>| {
        let mut turn = json!({"say": "Good day."});
        if let Some(stream) = stream {
            turn["stream"] = stream;
        }
        json!([turn])
    };
    let plain = given_an_agent().whose_model_says(turns(None)).ready().await;
    let streamed = given_an_agent().whose_model_says(turns(Some(json!({"fragments": 3})))).ready().await;

    let (one, other) = (plain.run().await, streamed.run().await);

    assert_eq!(plain.sink.deltas(), []);
    let fragments = ["Goo", "d d", "ay."].map(|text| Delta::Text { text: text.into() });
    assert_eq!(streamed.sink.deltas(), fragments);
    let facts = |journal: Vec<toolgate::core::run::JournalEntry>| -> Vec<_> {
        journal.into_iter().map(|recorded| without_first_token(&recorded.event)).collect()
    };
    let one = facts(plain.runner.journal(&one.run_id).await.unwrap());
    assert_eq!(one, facts(streamed.runner.journal(&other.run_id).await.unwrap()));
}

/// An event as JSON, without the one figure that only a streamed reply has.
fn without_first_token(event: &toolgate::core::run::Event) -> serde_json::Value {
    let mut fact = serde_json::to_value(event).unwrap();
    if let Some(reply) = fact.get_mut("reply").and_then(|reply| reply.as_object_mut()) {
        reply.remove("first_token_ms");
    }
    fact
}

#[tokio::test(start_paused = true)]
async fn the_tools_are_asked_for_once_an_execution_and_released_at_its_end() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_read"}]}, {"calls": [{"name": "mcp_files_read"}]}, say("Done."),
        ]))
        .ready()
        .await;

    world.run().await;

    assert_eq!((world.servers.listings(), world.servers.released()), (1, vec!["run_1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_repeats_its_call_ids_gets_unique_ones() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .whose_model_says(json!([
            {"calls": [{"id": "x", "name": "mcp_files_read"}, {"id": "x", "name": "mcp_files_read"}]},
            {"calls": [{"id": "x", "name": "mcp_files_read"}]},
            say("Done."),
        ]))
        .ready()
        .await;

    world.run().await;

    assert_eq!(world.servers.calls(), ["x", "x_1_1", "x_2_0"]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_agent_and_an_unknown_server_are_refused_before_anything_is_written() {
    let world = given_an_agent().with_tools("files", &["read"]).ready().await;

    let unknown = world.runner.execute(Request::new("unknown", "Hello")).await.unwrap_err();
    let wider = Request { servers: Some(vec!["shell".into()]), ..world.request() };
    let wider = world.runner.execute(wider).await.unwrap_err();

    assert_eq!(unknown, RunnerError::NoSuchAgent { name: "unknown".into(), known: vec!["clerk".into()] });
    assert_eq!(wider, RunnerError::NoSuchServer { agent: "clerk".into(), server: "shell".into() });
    assert_eq!(world.store.appends(), 0);
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_the_runs_under_way_and_no_longer() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 100))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await;
    let execution = world.start().await;
    let began = tokio::time::Instant::now();

    world.runner.close().await;

    assert_eq!(began.elapsed().as_millis(), 100, "the run takes 100 ms, and nothing else is waited for");
    assert_eq!(execution.until_idle().await.unwrap().status, Status::Completed);
}
