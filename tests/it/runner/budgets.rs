//! Budgets: soft limits let the model answer with what it has, hard limits end the run and keep its results.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::chat::Usd;
use toolgate::core::error::ErrorCode;
use toolgate::core::run::{Channel, Limits, OnExceed, PendingItem, Status, TighterLimits, Unpause};
use toolgate::ports::{Governor, PlannedCall};
use toolgate::runner::Resume;

use super::world::{Given, LEASE, answer_to, given_an_agent, results, said, say};

fn look() -> Value {
    json!({"calls": [{"name": "mcp_files_read"}], "final_text": "As far as I got."})
}

fn looking_on_and_on(limits: Limits) -> Given {
    given_an_agent().with_tools("files", &["read"]).within(limits).whose_model_says(json!([look(), look(), look()]))
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_tool_budget_is_reported_to_the_model() {
    let limits = Limits { max_tool_interactions: 2, ..Limits::default() };
    let world = looking_on_and_on(limits).ready().await;

    let report = world.run().await;

    assert_eq!((report.status, world.servers.calls().len()), (Status::Completed, 2));
    assert!(said(&report).iter().any(|line| line.contains("tool budget of this run is used up")));
    assert_eq!(report.output.unwrap().text, "As far as I got.");
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_an_exhausted_budget_are_not_sent() {
    let limits = Limits { max_tool_interactions: 1, ..Limits::default() };
    let stubborn = json!({"calls": [{"name": "mcp_files_read"}]});
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .within(limits)
        .whose_model_says(json!([stubborn, stubborn, say("Done.")]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned()]));
    assert!(answer_to(&report, "call_2_1").starts_with("Not run: the tool budget"));
}

#[tokio::test(start_paused = true)]
async fn the_last_turn_is_followed_by_a_final_answer() {
    let limits = Limits { max_iterations: 2, ..Limits::default() };
    let world = looking_on_and_on(limits).ready().await;

    let report = world.run().await;

    assert_eq!((report.status, world.servers.calls().len()), (Status::Incomplete, 2));
    assert_eq!(said(&report).iter().filter(|line| line.contains("-> read done")).count(), 2);
    assert_eq!(report.output.unwrap().text, "As far as I got.");
    assert!(report.error.unwrap().message.contains("max_iterations"));
}

#[tokio::test(start_paused = true)]
async fn exhausted_tokens_or_cost_end_the_run_with_a_final_answer() {
    let dear = json!({
        "calls": [{"name": "mcp_files_read"}], "usage": {"input_tokens": 90, "output_tokens": 10, "cost_usd": 0.5},
    });
    for (limits, name) in [
        (Limits { max_tokens: Some(100), ..Limits::default() }, "max_tokens"),
        (Limits { max_cost_usd: Usd::try_from(0.5).ok(), ..Limits::default() }, "max_cost_usd"),
    ] {
        let world = given_an_agent()
            .with_tools("files", &["read"])
            .within(limits)
            .whose_model_says(json!([dear, say("As far as I got.")]))
            .ready()
            .await;

        let report = world.run().await;

        assert_eq!((report.status, report.output.unwrap().text.as_str()), (Status::Incomplete, "As far as I got."));
        assert!(report.error.unwrap().message.contains(name));
    }
}

#[tokio::test(start_paused = true)]
async fn calls_to_servers_beyond_their_number_are_answered_and_not_made() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .within(Limits { max_mcp_calls: Some(1), ..Limits::default() })
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_read"}, {"name": "mcp_files_read"}]}, say("Done."),
        ]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!(world.servers.calls(), ["call_1_1"]);
    assert!(answer_to(&report, "call_1_2").contains("max_mcp_calls"));
}

fn with_a_second_to_live() -> Given {
    given_an_agent().within(Limits { deadline_s: Some(1), ..Limits::default() })
}

#[tokio::test(start_paused = true)]
async fn a_deadline_cuts_a_call_short_and_gives_it_up() {
    let world = with_a_second_to_live()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.hang_in("read"))
        .whose_model_says(json!([look(), say("Done.")]))
        .ready()
        .await;
    let began = tokio::time::Instant::now();

    let report = world.run().await;

    assert_eq!(report.error.unwrap().code, ErrorCode::DeadlineExceeded);
    assert_eq!((began.elapsed().as_millis(), world.servers.given_up()), (1000, vec!["call_1_1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_cuts_a_model_short() {
    let world = with_a_second_to_live().whose_model_says(json!([{"hang": true}])).ready().await;
    assert_eq!(world.run().await.error.unwrap().code, ErrorCode::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_after_the_deadline_finds_the_run_over() {
    let world = with_a_second_to_live()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]))
        .ready()
        .await;
    let run = world.run().await.run_id;
    tokio::time::sleep(LEASE * 5).await;

    let refused = world.resume(&run, results([("call_1_1", json!("ordered"))])).await.unwrap_err();
    let report = world.runner.report(&run).await.unwrap();

    assert!(refused.to_string().contains("the run is over: expired"), "{refused}");
    assert_eq!(report.error.unwrap().code, ErrorCode::Expired);
}

/// Refuses every call after the first ones.
struct Few(u32);

#[async_trait::async_trait]
impl Governor for Few {
    async fn admit(&self, call: PlannedCall<'_>) -> Result<(), String> {
        match call.budget.iterations < self.0 {
            true => Ok(()),
            false => Err(format!("{} may make {} calls", call.model, self.0)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn row_3_11_a_governor_refuses_a_model_call_and_its_verdict_is_journaled() {
    let world = looking_on_and_on(Limits::default())
        .that(|agent| agent.rules.on_exceed = OnExceed::Fail)
        .with_the_governor(Arc::new(Few(2)))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!((report.status, report.budget.iterations), (Status::Incomplete, 2));
    assert!(world.journal(&report.run_id).await.contains(&"llm.call.refused"));
    assert_eq!(report.error.unwrap().message, "the run reached its limit `governor`");
}

#[tokio::test(start_paused = true)]
async fn row_3_42_a_call_whose_worst_case_exceeds_the_limit_is_not_sent_until_more_is_granted() {
    let turn = json!({
        "calls": [{"name": "mcp_files_read"}], "usage": {"input_tokens": 90, "output_tokens": 10}, "final_text": "So far.",
    });
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .within(Limits { max_tokens: Some(150), ..Limits::default() })
        .that(|agent| agent.rules.on_exceed = OnExceed::Ask)
        .whose_model_says(json!([turn, say("Done.")]))
        .ready()
        .await;

    let paused = world.run().await;

    assert_eq!((paused.status, paused.budget.iterations), (Status::Pending, 1));
    let Some(PendingItem::Pause(pause)) = paused.pending.first() else { panic!("{:?}", paused.pending) };
    let reason = pause.reason.clone().unwrap();
    assert!(reason.starts_with("the worst case of the next model call exceeds `max_tokens`"), "{reason}");
    let limits = TighterLimits { max_tokens: Some(10_000), ..TighterLimits::default() };
    let unpause = Some(Unpause { by: "ann".into(), via: Channel::Library, limits });
    let done = world.runner.resume(&paused.run_id, Resume { unpause, ..Resume::default() }).await.unwrap();
    assert_eq!((done.status, done.output.unwrap().text), (Status::Completed, "Done.".to_owned()));
}
