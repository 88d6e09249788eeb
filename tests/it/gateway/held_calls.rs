//! A server of the sessions era that asks in the middle of a call, for a run that was started over HTTP (decision 0016).

use serde_json::{Value, json};

use super::servers::{Program, example};
use super::test_site::until;

/// What the run of a tool that charges, and then asks who is asking, comes to while its call is open.
async fn charging() -> (Program, String, Value) {
    let words = ["--stdio", "--fault", "elicits-late"];
    let server = json!({"stdio": {"command": example("fault_server"), "args": words}});
    let echo = json!({"id": "echo", "name": "mcp_odd_echo", "arguments": {"text": "charged"}});
    let turns = json!([{"calls": [echo]}, {"say": "It says: {{last_result}}"}]);
    let program = Program::with(json!({"odd": server}), turns).await;
    let created = program.post("/v1/runs", json!({"input": "Charge it"})).await;
    assert_eq!((created.status.as_u16(), created.text("status")), (202, "running"), "{created:?}");
    let path = format!("/v1/runs/{}", created.text("id"));
    let item = created.body["pending"][0].clone();
    assert_eq!((&item["type"], &item["held"], &item["call_id"]), (&json!("elicitation"), &json!(true), &json!("echo")));
    assert!(item["held_until"].is_string(), "{item}");
    (program, path, item)
}

/// What the witness says: how often the tool was executed.
async fn executed(program: &Program) -> Value {
    let counted = program.post("/v1/tools/mcp_odd_count/call", json!({"agent": "clerk", "arguments": {}})).await;
    assert_eq!(counted.status, 200, "{counted:?}");
    counted.body["result"]["structured"]["calls"].clone()
}

fn answer(item: &Value, reaction: &Value) -> Value {
    let keys = item["questions"].as_object().unwrap().keys();
    let answers: Value = keys.map(|key| (key.clone(), reaction.clone())).collect::<serde_json::Map<_, _>>().into();
    json!({"answers": [{"type": "elicitation", "call_id": item["call_id"], "responses": answers}]})
}

#[tokio::test]
async fn an_answer_over_http_reaches_the_open_call_and_the_tool_runs_once() {
    let (program, path, item) = charging().await;
    let given = answer(&item, &json!({"action": "accept", "content": {"name": "Ada"}}));

    let resumed = program.post(&format!("{path}/resume"), given).await;

    assert_eq!((resumed.status.as_u16(), resumed.text("status")), (200, "completed"), "{resumed:?}");
    assert!(resumed.body["output"].to_string().contains("hello, Ada"), "{resumed:?}");
    assert_eq!(executed(&program).await, 1);
    program.close().await;
}

#[tokio::test]
async fn an_answer_that_does_not_fit_leaves_the_call_open() {
    let (program, path, item) = charging().await;
    let resume = format!("{path}/resume");

    let wrong = program.post(&resume, answer(&item, &json!({"action": "accept", "content": {"name": 7}}))).await;
    assert_eq!((wrong.status.as_u16(), wrong.problem()), (422, "validation"), "{wrong:?}");
    assert_eq!(program.get(&path).await.body["pending"][0]["held"], true);

    let declined = program.post(&resume, answer(&item, &json!({"action": "decline"}))).await;
    assert_eq!(declined.text("status"), "completed", "{declined:?}");
    assert!(declined.body["output"].to_string().contains("the answer has no name"), "{declined:?}");
    assert_eq!(executed(&program).await, 1);
    program.close().await;
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_its_call_is_open_runs_the_tool_once() {
    let (program, path, _) = charging().await;
    let cancelled = program.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!(cancelled.text("status"), "cancelled", "{cancelled:?}");
    until(async || program.get(&path).await.body["pending"] == json!([])).await;
    assert_eq!(executed(&program).await, 1);
    program.close().await;
}
