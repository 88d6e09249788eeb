//! `toolgate models`: the configured models, and the checks of a model's capabilities.

use serde_json::{Value, json};

use super::costs::toolgate;
use super::desk::{Desk, Ended, steady};
use crate::models::model_server::{ModelServer, Prepared};

/// Replies with a text that fits every question.
const ABLE: &str = r#"
turns:
  - say: '{"city": "Paris", "country": "France"}'
    stream: { fragments: 3 }
    usage: { input_tokens: 50, output_tokens: 10, cost_usd: 0.001 }
    calls:
      - { name: ext_get_weather, arguments: { city: Paris } }
      - { name: ext_get_weather, arguments: { city: Oslo } }
  - { expect: { contains: 21 degrees }, say: It is sunny., usage: { input_tokens: 60, output_tokens: 5, cost_usd: 0.002 } }
"#;

fn finding<'a>(report: &'a Value, check: &str) -> &'a Value {
    report["checks"].as_array().unwrap().iter().find(|finding| finding["check"] == check).unwrap()
}

fn works(report: &Value) -> Vec<(&str, Option<bool>)> {
    let findings = report["checks"].as_array().unwrap().iter();
    findings.map(|finding| (finding["check"].as_str().unwrap(), finding["works"].as_bool())).collect()
}

fn report(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {} {}", ended.out, ended.err))
}

/// A desk with a model on that server.
fn asking(server: &ModelServer, further: &str) -> Desk {
    let desk = Desk::empty();
    let url = &server.base_url;
    let model = format!("{{ openai_chat: {{ base_url: '{url}', api_key: sk-very-secret, model: m{further} }} }}");
    desk.write("toolgate.yaml", &format!("models: {{ main: {model} }}\nprices: {{ main: {{ input: 1, output: 2 }} }}"));
    desk
}

/// A streamed reply of one text, in two pieces.
fn streamed(text: &str) -> Prepared {
    let (first, rest) = text.split_at(text.len() / 2);
    let piece = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string();
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string();
    Prepared::stream(&[&piece(first), &piece(rest), &end, USAGE, "[DONE]"])
}

/// A streamed reply of calls of the tool with these arguments.
fn calling(arguments: &[&str]) -> Prepared {
    let call = |(index, arguments): (usize, &&str)| {
        json!({"index": index, "id": format!("c{index}"), "type": "function",
               "function": {"name": "ext_get_weather", "arguments": arguments}})
    };
    let calls: Vec<Value> = arguments.iter().enumerate().map(call).collect();
    let piece = json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}).to_string();
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}).to_string();
    Prepared::stream(&[&piece, &end, USAGE, "[DONE]"])
}

const USAGE: &str = r#"{"choices": [], "usage": {"prompt_tokens": 100000, "completion_tokens": 10000}}"#;

#[test]
fn models_are_listed_with_where_they_are_what_they_charge_and_who_uses_them() {
    let desk = Desk::empty();
    desk.write("conversation.yaml", ABLE);
    desk.write(
        "toolgate.yaml",
        "
models:
  main: { openai_chat: { model: gpt-5-mini, api_key: sk-very-secret } }
  local: { openai_chat: { base_url: 'http://me:sk-very-secret@127.0.0.1:11434/v1?key=sk-very-secret', model: llama3 } }
  priced: { openai_chat: { base_url: 'http://127.0.0.1:8000/v1', model: own } }
  played: { scripted: { file: conversation.yaml } }
  named: { environment: {} }
prices: { priced: { input: 0.5, output: 1 } }
agents: { a: { model: main }, b: { model: main }, c: { model: local } }
",
    );
    let listed = desk.toolgate(&["models"]).expect(0);
    insta::assert_snapshot!(listed.out);
    let rows = report(&desk.toolgate(&["models", "--json"]).expect(0));
    let row = |name: &str| rows["models"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert_eq!(row("local")["price"], Value::Null);
    assert_eq!(row("local")["where"], "127.0.0.1:11434");
    assert_eq!(
        (row("main")["price"]["from"].as_str(), row("main")["price"]["input"].as_str()),
        (Some("list"), Some("0.25"))
    );
    assert_eq!(row("priced")["price"]["from"], "configuration");
    assert_eq!(row("main")["agents"], json!(["a", "b"]));
    assert!(!format!("{}{rows}", listed.out).contains("sk-very-secret"));
}

#[test]
fn a_model_that_can_everything_shows_it_line_by_line() {
    let desk = Desk::playing(ABLE);
    let checked = desk.toolgate(&["models", "check", "played"]).expect(0);
    insta::assert_snapshot!(steady(&checked.out));
    for step in ["asking for a text", "asking for a tool call", "asking for two calls", "asking for JSON"] {
        assert!(checked.err.contains(step), "{step}: {}", checked.err);
    }
}

#[tokio::test]
async fn a_model_on_a_server_shows_what_it_can_over_the_wire() {
    let server = ModelServer::answering([
        streamed("Paris. One, two, three"),
        calling(&[r#"{"city": "Paris"}"#]),
        streamed("It is 21 degrees."),
        calling(&[r#"{"city": "Paris"}"#, r#"{"city": "Oslo"}"#]),
        streamed(r#"{"city": "Paris", "country": "France"}"#),
    ])
    .await;
    let desk = asking(&server, "");
    let report = report(&toolgate(&desk, &["models", "check", "main", "--json"]).await.expect(0));
    assert_eq!(report["usable"], true);
    assert!(works(&report).iter().all(|(_, works)| *works == Some(true)), "{report:#}");
    assert_eq!(report["usage"]["input_tokens"], 500_000);
    assert!(finding(&report, "cost")["evidence"].as_str().unwrap().starts_with("$0.6000"), "{report:#}");
    let asked = server.asked();
    let result = asked[2].json();
    assert_eq!(result["messages"][2]["role"], "tool", "the result goes back to the call: {result}");
    assert!(asked[0].json().get("tools").is_none());
    assert_eq!(asked[1].json()["tools"][0]["function"]["name"], "ext_get_weather");
}

#[tokio::test]
async fn a_model_that_only_talks_cannot_be_used_by_agents() {
    let reply = r#"{"choices": [{"message": {"content": "Paris!"}, "finish_reason": "stop"}]}"#;
    let server = ModelServer::answering(std::iter::repeat_n(Prepared::json(reply), 4)).await;
    let desk = asking(&server, ", stream: false");
    let ended = toolgate(&desk, &["models", "check", "main", "--json"]).await.expect(1);
    let report = report(&ended);
    let expected = [
        ("answers", Some(true)),
        ("streaming", Some(false)),
        ("tool_call", Some(false)),
        ("result_accepted", None),
        ("parallel_calls", Some(false)),
        ("structured_output", Some(false)),
        ("usage", Some(false)),
        ("cost", Some(false)),
    ];
    assert_eq!(works(&report), expected);
    assert_eq!((report["usable"].as_bool(), &report["usage"]["cost_usd"]), (Some(false), &Value::Null));
    assert_eq!(finding(&report, "tool_call")["evidence"], r#"it answered "Paris!" and called no tool"#);
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_no_tool_call() {
    let server = ModelServer::answering([
        streamed("Paris. One, two"),
        calling(&[r#"{"town": "Paris"}"#]),
        streamed("It is 21 degrees."),
        calling(&[r#"{"city": "Par"#, r#"{"city": "Oslo"}"#]),
        streamed("Paris, France"),
    ])
    .await;
    let report = report(&toolgate(&asking(&server, ""), &["models", "check", "main", "--json"]).await.expect(1));
    let told = finding(&report, "tool_call")["evidence"].as_str().unwrap();
    assert!(told.contains(r#"{"town":"Paris"} do not fit: unknown field `town`"#), "{told}");
    assert_eq!(finding(&report, "result_accepted")["works"], true);
    assert_eq!(finding(&report, "parallel_calls")["evidence"], "1 call in one reply");
}

#[tokio::test]
async fn an_authentication_error_ends_the_check_and_hides_the_key() {
    let refused = Prepared::json(r#"{"error": {"message": "bad key sk-very-secret"}}"#).status(401);
    let server = ModelServer::answering([refused]).await;
    let checked = toolgate(&asking(&server, ""), &["models", "check", "main"]).await.expect(1);
    let told = [
        "✗ answers           provider_auth: ",
        "    help: check the model's `api_key`",
        "? streaming         there was no answer",
        "? tool call         the model does not answer",
        "agents cannot use it",
    ];
    told.iter().for_each(|line| assert!(checked.out.contains(line), "{line}: {}", checked.out));
    assert_eq!(server.asked().len(), 1);
    assert!(!format!("{}{}", checked.out, checked.err).contains("sk-very-secret"), "{}", checked.out);
}

#[tokio::test]
async fn a_model_that_makes_images_is_not_asked_at_all() {
    let server = ModelServer::answering([]).await;
    let desk = asking(&server, "");
    let images =
        std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap().replace("openai_chat", "openai_images");
    desk.write("toolgate.yaml", &images);
    let refused = toolgate(&desk, &["models", "check", "main"]).await.expect(2);
    assert!(refused.err.contains("makes images"), "{}", refused.err);
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn each_check_stands_alone_and_a_failure_comes_with_its_remedy() {
    let server = ModelServer::answering([
        Prepared::json(r#"{"error": {"message": "too long a question"}}"#).status(400),
        calling(&[r#"{"city": "Paris"}"#]),
        Prepared::json("{}").status(503),
        calling(&[r#"{"city": "Paris"}"#, r#"{"city": "Oslo"}"#]),
        streamed(r#"{"city": "Paris", "country": "France"}"#),
    ])
    .await;
    let checked = toolgate(&asking(&server, ""), &["models", "check", "main"]).await.expect(1);
    let told = [
        "✗ answers           provider_rejected: ",
        "? streaming         there was no answer",
        "✓ tool call         ext_get_weather {\"city\":\"Paris\"}",
        "✗ result accepted   provider_unavailable: ",
        "✓ parallel calls    2 calls in one reply",
        "✓ structured output",
        "agents cannot use it",
    ];
    told.iter().for_each(|line| assert!(checked.out.contains(line), "{line}: {}", checked.out));
}

#[test]
fn an_unreachable_server_is_reported_with_a_remedy() {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", "models: { main: { openai_chat: { base_url: 'http://127.0.0.1:9/v1', model: m } } }");
    let checked = desk.toolgate(&["models", "check", "main"]).expect(1);
    let remedy = "help: check the model's `base_url`, and that the server is running";
    assert_eq!(checked.out.matches(remedy).count(), 1, "what to do is said once: {}", checked.out);
    assert!(checked.out.contains("? usage             there was no reply"), "{}", checked.out);
}

#[test]
fn an_unknown_model_is_reported_without_a_request() {
    let desk = Desk::playing(ABLE);
    let unknown = desk.toolgate(&["models", "check", "plaid"]).expect(2);
    assert!(unknown.err.contains("there is no model `plaid`; configured are: played"), "{}", unknown.err);
    let missing = Desk::empty().toolgate(&["models", "check", "environment"]).expect(2);
    assert!(
        missing.err.contains("no model is configured") && missing.err.contains("OPENAI_API_KEY"),
        "{}",
        missing.err
    );
}

#[test]
fn tools_say_how_they_fit_into_what_a_model_takes() {
    let desk = Desk::playing(ABLE);
    let ended = desk.toolgate(&["tools", "--for", "played"]).expect(0);
    assert!(ended.out.contains("✓ mcp_shop_add_note\n"), "{}", ended.out);
    assert!(ended.out.ends_with("tools: 6 as they are, 0 with losses, 0 left out\n"), "{}", ended.out);
    let fits = report(&desk.toolgate(&["tools", "--for", "openai_chat", "--json"]).expect(0));
    assert_eq!((fits["for"].as_str(), fits["tools"][0]["fit"].as_str()), (Some("openai_chat"), Some("whole")));
    let unknown = desk.toolgate(&["tools", "--for", "unknown"]).expect(2);
    assert!(unknown.err.contains("`unknown` is neither a model nor a kind of model"), "{}", unknown.err);
}
