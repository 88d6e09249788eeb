//! Misdirected input: input for a call that does not wait for it is refused for that reason, whatever its content.

use serde_json::{Value, json};
use toolgate::core::error::ErrorCode;
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Input, Resume};
use toolgate::core::tool::AskHuman;
use toolgate::runner::Answer;

use super::served::Served;
use crate::runner::world::{Kept, given_an_agent, say};

/// A run with a settled result, and a pending result, decision and answer.
async fn waiting() -> (Served, String) {
    let ask = json!({"question": "Which?"});
    let calls = json!([
        {"id": "settled", "name": "ext_order"}, {"id": "result", "name": "ext_order"},
        {"id": "decision", "name": "mcp_files_delete"}, {"id": "answer", "name": "ask_human", "arguments": ask},
    ]);
    let world = given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "*_delete")
        .that(|agent| agent.rules.ask_human = Some(AskHuman::default()))
        .that_checks_by_schema()
        .whose_model_says(json!([{"calls": calls}, say("Done.")]))
        .kept(Kept::InMemory)
        .await;
    let served = Served::to_all(world).await;
    let tool = json!({"name": "order", "input_schema": {"type": "object"}, "result_schema": {"type": "object"}});
    let run = served.run(json!({"input": "Go", "external_tools": [tool]})).await;
    let settled = json!({"answers": [{"type": "result", "call_id": "settled", "output": {}}], "partial": true});
    let given = served.post(&format!("/v1/runs/{run}/resume"), settled).await;
    assert_eq!(given.status, 200, "{given:?}");
    assert_eq!(given.body["pending"].as_array().unwrap().len(), 3, "{given:?}");
    (served, run)
}

/// A result that matches none of the schemas.
fn result(call: &str) -> Value {
    json!({"answers": [{"type": "result", "call_id": call, "output": 5}], "partial": true})
}

/// A denial with arguments, which is invalid.
fn decision(call: &str) -> Value {
    json!({"answers": [{"type": "decision", "call_id": call, "decision": "deny", "edited_arguments": {}}], "partial": true})
}

/// An answer without text.
fn answer(call: &str) -> Value {
    json!({"answers": [{"type": "answer", "call_id": call}], "partial": true})
}

/// Answers to requests that the server did not send.
fn input(call: &str) -> Value {
    json!({"answers": [{"type": "elicitation", "call_id": call, "responses": {"size": {"action": "decline"}}}], "partial": true})
}

#[tokio::test]
async fn every_item_of_a_call_names_its_tool() {
    let (served, run) = waiting().await;

    let items = served.get(&format!("/v1/runs/{run}")).await.body["pending"].clone();

    let tools = items.as_array().unwrap().iter().map(|item| (&item["tool"]["name"], &item["tool_name"]));
    let named = [("order", "ext_order"), ("delete", "mcp_files_delete"), ("ask_human", "ask_human")];
    let named = named.map(|(tool, name)| (json!(tool), json!(name)));
    assert!(tools.eq(named.iter().map(|(tool, name)| (tool, name))), "{items}");
}

#[tokio::test]
async fn the_kind_of_a_pending_item_is_checked_before_its_input() {
    let (served, run) = waiting().await;
    let path = format!("/v1/runs/{run}/resume");
    let twice = json!({"answers": [{"type": "result", "call_id": "result", "output": 5}, {"type": "result", "call_id": "result", "output": 6}]});
    let stale = json!({"answers": [{"type": "result", "call_id": "result", "output": 5}], "partial": true, "expected_version": 1});
    for (body, status, code, reason) in [
        (result("settled"), 409, "conflict", json!("already_answered")),
        (result("decision"), 400, "invalid_request", json!("wrong_type")),
        (result("answer"), 400, "invalid_request", json!("wrong_type")),
        (result("unheard_of"), 404, "not_found", json!("unknown_call")),
        (decision("settled"), 409, "conflict", json!("already_answered")),
        (decision("result"), 400, "invalid_request", json!("wrong_type")),
        (decision("answer"), 400, "invalid_request", json!("wrong_type")),
        (answer("settled"), 409, "conflict", json!("already_answered")),
        (answer("result"), 400, "invalid_request", json!("wrong_type")),
        (answer("decision"), 400, "invalid_request", json!("wrong_type")),
        (input("settled"), 409, "conflict", json!("already_answered")),
        (input("result"), 400, "invalid_request", json!("wrong_type")),
        (input("decision"), 400, "invalid_request", json!("wrong_type")),
        (twice, 400, "invalid_request", json!("answered_twice")),
        (stale, 409, "conflict", json!("version_moved")),
        // Content is validated only for a call that waits for this kind of input.
        (result("result"), 422, "validation", json!(null)),
        (answer("answer"), 422, "validation", json!(null)),
        (decision("decision"), 422, "validation", json!(null)),
    ] {
        let refused = served.post(&path, body.clone()).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (status, code), "{body} gives {refused:?}");
        assert_eq!(refused.body["reason"], reason, "{body} gives {refused:?}");
    }
}

#[tokio::test]
async fn input_for_an_ended_run_is_a_conflict() {
    let (served, run) = waiting().await;
    served.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    for body in [result("result"), decision("decision"), answer("answer"), input("decision"), result("settled")] {
        let refused = served.post(&format!("/v1/runs/{run}/resume"), body.clone()).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"), "{body} gives {refused:?}");
        let reason = if body == result("settled") { "already_answered" } else { "run_over" };
        assert_eq!(refused.text("reason"), reason, "{body} gives {refused:?}");
    }
}

#[tokio::test]
async fn the_library_checks_the_call_before_the_result() {
    let (served, run) = waiting().await;
    for (call, code) in [("settled", ErrorCode::Conflict), ("decision", ErrorCode::InvalidRequest)] {
        let resume = Input::Resume(Resume::default().with(call, Answer::output(5)).partial());
        let refused = served.world.runner.resume_run(&run.as_str().into(), resume, None).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
    }
}
