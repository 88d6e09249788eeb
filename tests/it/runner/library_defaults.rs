//! A runner as an application builds it from the quickstart: only a store and an agent.

use std::sync::Arc;

use serde_json::json;
use toolgate::core::chat::Message;
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::prelude::*;
use toolgate::runner::Builder;

fn with_a_model_that_sends(turns: serde_json::Value) -> Builder {
    let script = Script::from_json(&json!({"turns": turns}).to_string()).unwrap();
    let agent = Agent::new("support", Arc::new(ScriptedModel::new("scripted", script)));
    AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent)
}

fn get_order() -> ExternalTool {
    ExternalTool::new("get_order", "Looks an order up by its id.")
        .input_schema(json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}))
        .result_schema(json!({"type": "object", "required": ["status"]}))
}

fn a_call_with_a_number_for_the_id() -> serde_json::Value {
    json!([{"calls": [{"name": "ext_get_order", "arguments": {"id": 77}}]}, {"say": "There is no such order."}])
}

#[tokio::test]
async fn arguments_that_violate_the_schema_do_not_reach_the_application() {
    let runner = with_a_model_that_sends(a_call_with_a_number_for_the_id()).build().unwrap();
    let report = runner.execute(Request::new("support", "Is 77 paid?").external_tool(get_order())).await.unwrap();
    assert_eq!((report.status, report.pending.len()), (Status::Completed, 0));
    let texts: Vec<String> = report.messages.iter().map(|message: &Arc<Message>| format!("{message:?}")).collect();
    assert!(texts.iter().any(|text| text.contains("Invalid arguments for `ext_get_order`")), "{texts:?}");
}

#[tokio::test]
async fn without_validation_every_argument_object_reaches_the_application() {
    let runner = with_a_model_that_sends(a_call_with_a_number_for_the_id()).without_validation().build().unwrap();
    let report = runner.execute(Request::new("support", "Is 77 paid?").external_tool(get_order())).await.unwrap();
    assert_eq!((report.status, report.pending.len()), (Status::Pending, 1));
}

#[tokio::test]
async fn a_result_that_violates_its_schema_is_refused_and_leaves_the_call_pending() {
    let call = json!([{"calls": [{"name": "ext_get_order", "arguments": {"id": "77"}}]}, {"say": "It is paid."}]);
    let runner = with_a_model_that_sends(call).build().unwrap();
    let report = runner.execute(Request::new("support", "Is 77 paid?").external_tool(get_order())).await.unwrap();
    let call = report.pending[0].call_id().unwrap().clone();
    let refused = runner.resume(&report.run_id, Resume::new().output(call.clone(), json!("paid"))).await;
    assert!(matches!(refused, Err(RunnerError::Refused(_))), "{refused:?}");
    let report = runner.resume(&report.run_id, Resume::new().output(call, json!({"status": "paid"}))).await.unwrap();
    assert_eq!(report.status, Status::Completed);
}

#[tokio::test]
async fn a_final_answer_that_violates_its_schema_is_corrected() {
    let turns = json!([{"say": "{\"paid\": \"yes\"}"}, {"say": "{\"paid\": true}"}]);
    let runner = with_a_model_that_sends(turns).build().unwrap();
    let schema = json!({"type": "object", "properties": {"paid": {"type": "boolean"}}, "required": ["paid"]});
    let request = Request { output_schema: Some(schema), ..Request::new("support", "Is 77 paid?") };
    let report = runner.execute(request).await.unwrap();
    assert_eq!(report.output.unwrap().value, Some(json!({"paid": true})));
}
