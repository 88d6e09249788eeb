//! Spending limits of a served agent whose model has a configured price.

use serde_json::{Value, json};

use super::GATEWAY;
use super::server::{Server, desk};
use crate::models::model_server::{ModelServer, Prepared};

/// A call, for 200,000 tokens.
const CALL: &str = r#"{"choices": [{"message": {"tool_calls": [{"id": "c1", "type": "function", "function":
    {"name": "mcp_shop_find_customer", "arguments": "{\"name\": \"Ada\"}"}}]}, "finish_reason": "tool_calls"}], "usage":
    {"prompt_tokens": 199900, "completion_tokens": 100}}"#;
const ANSWER: &str = r#"{"choices": [{"message": {"content": "She lives in London."}, "finish_reason": "stop"}], "usage":
    {"prompt_tokens": 200200, "completion_tokens": 10}}"#;

/// The events of a run, oldest first.
async fn events(server: &Server, run: &str) -> Vec<Value> {
    let request =
        server.client.get(format!("{}/v1/runs/{run}/events", server.url)).header("accept", "application/json");
    let page: Value = request.send().await.unwrap().json().await.unwrap();
    page["data"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_13_a_call_whose_price_exceeds_the_budget_waits_for_a_higher_one() {
    let models = ModelServer::answering([Prepared::json(CALL), Prepared::json(ANSWER)]).await;
    let settings = format!(
        "{GATEWAY}
models: {{ main: {{ openai_chat: {{ base_url: '{}', model: m, stream: false, max_tokens: 1000 }} }} }}
prices: {{ main: {{ input: 5, output: 10 }} }}
servers: {{ shop: {{ stdio: {{ command: toolgate, args: [demo-server] }}, trusted: true }} }}
agents:
  desk:
    servers: [shop]
    policy: bypass
    on_exceed: ask
    limits: {{ max_cost_usd: 1.5 }}
    compaction: {{ at_tokens: 100000, keep_tokens: 0 }}
",
        models.base_url
    );
    let desk = desk(&settings, "turns: []");
    let server = Server::at(&desk).await;

    let (status, paused) = server.post("/v1/runs", "wait=30", json!({"input": "Where does Ada live?"})).await;

    assert_eq!((status, &paused["status"], models.asked().len()), (201, &json!("pending"), 1), "{paused}");
    assert_eq!(paused["usage"]["cost_usd"], "1.0005");
    let pause = &paused["pending"][0];
    assert_eq!((&pause["type"], &pause["by"]), (&json!("pause"), &json!("toolgate")), "{pause}");
    let reason = "the worst case of the next model call exceeds `max_cost_usd`";
    assert!(pause["reason"].as_str().unwrap().starts_with(reason), "{pause}");
    let run = paused["id"].as_str().unwrap();
    let told = events(&server, run).await;
    let of =
        |kind: &str| told.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind}: {told:#?}"));
    let compaction = &of("conversation.compaction.failed")["error"];
    assert_eq!((&compaction["code"], &compaction["message"]), (&json!("turn_limit"), &json!(reason)));
    let refused = of("llm.call.refused");
    assert_eq!((&refused["limit"], &refused["estimate"]["output_tokens"]), (&json!("max_cost_usd"), &json!(1000)));
    assert!(refused["estimate"]["cost_usd"].as_str().unwrap().parse::<f64>().unwrap() > 1.01, "{refused}");

    let more = json!({"continue": true, "limits": {"max_cost_usd": 3}});
    let (status, done) = server.post(&format!("/v1/runs/{run}/resume"), "wait=30", more).await;

    assert_eq!((status, &done["status"]), (200, &json!("completed")), "{done}");
    assert_eq!(done["output"]["text"], "She lives in London.");
    assert_eq!((&done["usage"]["cost_usd"], models.asked().len()), (&json!("2.0016"), 1), "one more request");
}
