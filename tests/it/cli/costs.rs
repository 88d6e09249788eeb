//! Cost of a run in the output for people and programs, and the limit on it.

use serde_json::Value;

use super::desk::{Desk, Ended};
use crate::models::model_server::{ModelServer, Prepared};

const REPLY: &str = r#"{"choices": [{"message": {"content": "Forty-two."}, "finish_reason": "stop"}], "usage":
    {"prompt_tokens": 1000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 400},
     "completion_tokens_details": {"reasoning_tokens": 50}}}"#;
const CALL: &str = r#"{"choices": [{"message": {"tool_calls": [{"id": "c1", "type": "function", "function":
    {"name": "mcp_shop_find_customer", "arguments": "{\"name\": \"Ada\"}"}}]}, "finish_reason": "tool_calls"}], "usage":
    {"prompt_tokens": 200000, "completion_tokens": 0}}"#;

/// A desk whose agent uses this model server, with further lines of configuration.
fn desk(server: &ModelServer, further: &str) -> Desk {
    let desk = Desk::empty();
    desk.write(
        "toolgate.yaml",
        &format!(
            "
models: {{ main: {{ openai_chat: {{ base_url: '{}', model: m, stream: false }} }} }}
servers: {{ shop: {{ stdio: {{ command: toolgate, args: [demo-server] }}, trusted: true }} }}
{further}
",
            server.base_url
        ),
    );
    desk
}

/// Runs the program while this runtime serves the model.
pub(super) async fn toolgate(desk: &Desk, arguments: &[&str]) -> Ended {
    let mut command = desk.command(arguments);
    tokio::task::spawn_blocking(move || Ended::from(command.output().unwrap())).await.unwrap()
}

#[tokio::test]
async fn a_run_reports_its_usage_and_cost() {
    let server = ModelServer::answering([Prepared::json(REPLY), Prepared::json(REPLY)]).await;
    let desk = desk(&server, "prices: { main: { input: 2, output: 10, cache_read: 0.5 } }");
    let told = "1000 (400 cached) → 200 (50 reasoning) tokens, $0.0034";

    let ran = toolgate(&desk, &["run", "What is it?"]).await.expect(0);
    assert!(ran.err.contains(&format!("completed: 0 turns with tools, {told}")), "{}", ran.err);
    let shown = toolgate(&desk, &["runs", "show", "last"]).await.expect(0);
    assert_eq!(shown.out.matches(told).count(), 2, "for the turn and for the run: {}", shown.out);

    let lines = toolgate(&desk, &["run", "--json", "What is it?"]).await.expect(0).json_lines();
    for event in ["llm.call.completed", "execution.completed", "result"] {
        let line = lines.iter().find(|line| line["type"] == event).unwrap();
        assert_eq!(line["usage"]["cost_usd"], "0.0034", "{line}");
        assert_eq!(line["usage"]["cache_read_tokens"], 400, "{line}");
    }
}

#[tokio::test]
async fn an_unknown_cost_is_null() {
    let server = ModelServer::answering([Prepared::json(REPLY), Prepared::json(REPLY)]).await;
    let desk = desk(&server, "");
    let ran = toolgate(&desk, &["run", "What is it?"]).await.expect(0);
    assert!(ran.err.contains("200 (50 reasoning) tokens, cost unknown"), "{}", ran.err);
    let result = toolgate(&desk, &["run", "--json", "What is it?"]).await.expect(0).result();
    assert_eq!(result["usage"]["cost_usd"], Value::Null);
    assert!(result["usage"].as_object().unwrap().contains_key("cost_usd"));
}

#[tokio::test]
async fn a_cost_limit_applies_where_the_price_is_known() {
    let server = ModelServer::answering([Prepared::json(CALL), Prepared::json(REPLY)]).await;
    let further = "prices: { main: { input: 5, output: 10 } }\nagents: { a: { servers: [shop], policy: bypass, limits: \
                   { max_cost_usd: 1.0 } } }";
    let desk = desk(&server, further);
    let result = toolgate(&desk, &["run", "--json", "Who is Ada?"]).await.expect(1).result();
    assert_eq!((result["status"].as_str(), result["error"]["code"].as_str()), (Some("incomplete"), Some("turn_limit")));
    assert_eq!(toolgate(&desk, &["config", "check"]).await.expect(0).err, "");
}

#[tokio::test]
async fn config_check_warns_of_a_cost_limit_without_a_price() {
    let server = ModelServer::answering([]).await;
    let desk = desk(&server, "agents: { a: { limits: { max_cost_usd: 1.0 } } }");
    let checked = toolgate(&desk, &["config", "check"]).await.expect(0);
    assert!(checked.out.starts_with("ok "), "{}", checked.out);
    let warning = "warning: agent a: `max_cost_usd` has no effect, the price of model main is unknown";
    assert!(checked.err.starts_with(warning), "{}", checked.err);
    assert!(checked.err.contains("prices: { main: { input:"), "{}", checked.err);
}
