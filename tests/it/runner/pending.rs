//! External calls: the run waits for the application's results and resumes with them.

use serde_json::{Value, json};
use toolgate::core::run::{PendingExternalResult, PendingItem, Status};
use toolgate::core::tool::{Arguments, Origin};
use toolgate::runner::{Answer, Resume};

use super::world::{Given, Kept, answer_to, given_an_agent, on_every_store, results, said, say};

fn an_order() -> Given {
    given_an_agent().with_an_external_tool("order").whose_model_says(json!([
        {"say": "I order.", "calls": [{"name": "ext_order", "arguments": {"item": "tea"}}]},
        {"say": "It says: {{last_result}}."},
    ]))
}

on_every_store! {
    async fn an_external_call_makes_the_run_pending(kept: Kept) {
        let world = an_order().kept(kept).await;

        let report = world.run().await;

        assert_eq!((report.status, report.tool_interactions), (Status::Pending, 1));
        assert_eq!(said(&report), ["user: Hello", "model: I order.", "model: call_1_1 = ext_order()"]);
        let pending = PendingItem::ExternalResult(PendingExternalResult {
            call_id: "call_1_1".into(),
            tool: Origin::External { tool: "order".into() }.into(),
            tool_name: toolgate::core::tool::external_name("order"),
            arguments: Arguments::from_value(json!({"item": "tea"})),
            result_schema: None,
            requested_at: report.pending[0].requested_at(),
            expires_at: None,
        });
        assert_eq!(report.pending, [pending]);
    }

    async fn another_process_resumes_with_the_result(kept: Kept) {
        let world = an_order().kept(kept).await;
        let waiting = world.run().await;

        let other = world.another_process().await;
        let report = other.resume(&waiting.run_id, results([("call_1_1", json!("ordered"))])).await.unwrap();

        assert_eq!((report.status, report.output.unwrap().text.as_str()), (Status::Completed, "It says: ordered."));
        let facts = world.journal(&waiting.run_id).await;
        assert_eq!(
            facts[waiting.version as usize..],
            ["execution.resumed", "tool.completed", "llm.call.started", "llm.call.completed", "execution.ended"]
        );
    }

    async fn the_same_resume_repeated_changes_nothing(kept: Kept) {
        let world = an_order().kept(kept).await;
        let waiting = world.run().await;
        let once = world.resume(&waiting.run_id, results([("call_1_1", json!("ordered"))])).await.unwrap();

        let twice = world.resume(&waiting.run_id, results([("call_1_1", json!("ordered"))])).await.unwrap();

        assert_eq!((once.version, once.messages), (twice.version, twice.messages));
    }
}

async fn resumed_with(resume: Resume) -> String {
    let world = an_order().ready().await;
    let waiting = world.run().await;
    let report = world.resume(&waiting.run_id, resume).await.unwrap();
    assert_eq!(report.status, Status::Completed);
    said(&report)[3].clone()
}

#[tokio::test(start_paused = true)]
async fn the_application_may_report_an_error_or_abandon_the_call() {
    let failed = Resume::default().with("call_1_1", Answer::error("out of tea"));
    let abandoned = Resume::default().with("call_1_1", Answer::abandoned());

    assert_eq!(resumed_with(failed).await, "user: call_1_1 failed -> out of tea");
    assert_eq!(resumed_with(abandoned).await, "user: call_1_1 failed -> The application did not run this call.");
}

#[tokio::test(start_paused = true)]
async fn calls_to_servers_are_finished_before_the_application_is_asked() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 100))
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}, {"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await;

    let waiting = world.run().await;

    assert_eq!(
        said(&waiting)[1..],
        ["model: call_1_1 = ext_order()", "model: call_1_2 = mcp_files_read()", "user: call_1_2 -> read done",]
    );
    let report = world.resume(&waiting.run_id, results([("call_1_1", json!("ordered"))])).await.unwrap();
    assert_eq!(said(&report)[3..], ["user: call_1_1 -> ordered", "user: call_1_2 -> read done", "model: Done."]);
    assert_eq!(world.servers.calls(), ["call_1_2"]);
}

fn two_orders() -> Value {
    json!([{"calls": [{"name": "ext_order"}, {"name": "ext_order"}]}, say("Done.")])
}

#[tokio::test(start_paused = true)]
async fn partial_answers_are_accepted_if_marked_as_partial() {
    let world = given_an_agent().with_an_external_tool("order").whose_model_says(two_orders()).ready().await;
    let run = world.run().await.run_id;

    let half = world.resume(&run, results([("call_1_2", json!("second"))]).partial()).await.unwrap();
    let whole = world.resume(&run, results([("call_1_1", json!("first"))])).await.unwrap();

    assert_eq!((half.status, half.pending.len()), (Status::Pending, 1));
    assert_eq!(whole.status, Status::Completed);
    assert_eq!((answer_to(&whole, "call_1_1"), answer_to(&whole, "call_1_2")), ("first".into(), "second".into()));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_while_a_server_still_works_is_heard_by_the_same_driver() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 1000))
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}, {"name": "mcp_files_read"}]}, say("Done.")]))
        .ready()
        .await;
    let execution = world.start().await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;

    let resumed = world.resume(&execution.run, results([("call_1_1", json!("ordered"))])).await.unwrap();

    assert_eq!(resumed.status, Status::Completed);
    assert_eq!(answer_to(&resumed, "call_1_2"), "read done");
    assert_eq!(execution.until_idle().await.unwrap().version, resumed.version);
    assert_eq!(world.servers.calls(), ["call_1_2"]);
}
