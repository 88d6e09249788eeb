//! Answers of models as they are in the field, from the command line to the provider's API and back.

use serde_json::{Value, json};

use super::costs::toolgate;
use super::desk::{Desk, Ended};
use crate::models::model_server::{ModelServer, Prepared};

const CONTINUE: &str = "[toolgate] Your last reply was empty. Continue: call the tools that you still need, or answer the user in \
                        text.";

fn recorded(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The events of a recorded stream.
fn stream(name: &str) -> Prepared {
    let text = recorded(name);
    let events: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    Prepared::stream(&events)
}

/// A desk with the bundled server and a model behind this API, with further members of its agent.
fn desk(server: &ModelServer, api: &str, agent: &Value) -> Desk {
    let desk = Desk::empty();
    let mut agent = agent.clone();
    agent["model"] = json!("main");
    agent["servers"] = json!(["shop"]);
    let base_url = match api {
        "gemini" => server.base_url.replace("/v1", "/v1beta"),
        _ => server.base_url.clone(),
    };
    let config = json!({
        "models": {"main": {api: {"base_url": base_url, "model": "m", "api_key": "k"}}},
        "servers": {"shop": {"stdio": {"command": "toolgate", "args": ["demo-server"]}, "trusted": true}},
        "agents": {"clerk": agent},
    });
    desk.write("toolgate.yaml", &config.to_string());
    desk
}

/// The call of a tool and a text, as streams of each API.
fn gemini(parts: &Value) -> Prepared {
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP"});
    Prepared::stream(&[&json!({"candidates": [candidate]}).to_string()])
}

fn anthropic(block: &Value, reason: &str) -> Prepared {
    let events = [
        json!({"type": "message_start", "message": {"content": [], "stop_reason": null}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
        json!({"type": "message_stop"}),
    ];
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    Prepared::stream(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

async fn run(desk: &Desk) -> Ended {
    toolgate(desk, &["run", "--json", "--policy", "bypass", "Who is Ada?"]).await
}

#[tokio::test]
async fn gemini_is_asked_once_more_after_an_empty_answer_to_a_tool() {
    let call = json!([{"functionCall": {"name": "mcp_shop_find_customer", "args": {"name": "Ada"}}}]);
    let answers = [gemini(&call), stream("reports/empty_gemini.sse"), gemini(&json!([{"text": "C-1001."}]))];
    let server = ModelServer::answering(answers).await;
    let result = run(&desk(&server, "gemini", &json!({}))).await.expect(0).result();
    assert_eq!((&result["output"]["text"], &result["warnings"]), (&json!("C-1001."), &json!([])));
    let contents = server.asked().remove(2).json()["contents"].take();
    let last = contents.as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    assert!(last["parts"][0]["functionResponse"].to_string().contains("C-1001"), "{last}");
    assert_eq!(last["parts"][1], json!({"text": CONTINUE}));
}

#[tokio::test]
async fn anthropic_is_asked_to_continue_and_a_second_empty_answer_is_a_warning() {
    let call = json!({"type": "tool_use", "id": "t1", "name": "mcp_shop_find_customer", "input": {"name": "Ada"}});
    let empty = || stream("reports/empty_anthropic.sse");
    let server = ModelServer::answering([anthropic(&call, "tool_use"), empty(), empty()]).await;
    let result = run(&desk(&server, "anthropic", &json!({}))).await.expect(0).result();
    assert_eq!((&result["status"], &result["output"]["text"]), (&json!("completed"), &json!("")));
    assert_eq!(result["warnings"], json!([{"code": "empty_answer", "servers": [], "limit": null, "restart": null}]));
    let messages = server.asked().remove(2).json()["messages"].take();
    let last = messages.as_array().unwrap().last().unwrap();
    assert_eq!((&last["role"], &last["content"][0]["type"]), (&json!("user"), &json!("tool_result")));
    assert_eq!(last["content"][1]["text"], CONTINUE);
}

#[tokio::test]
async fn a_reply_without_its_calls_is_retried_and_then_fails_the_run() {
    let without_its_call = || stream("providers/openai_compat/tool_calls_announced_none_sent.sse");
    let without_a_reason = || stream("providers/openai_compat/null_finish_reason.sse");
    for (answers, attempts) in [(vec![without_its_call(), without_its_call()], 2), (vec![without_a_reason()], 1)] {
        let server = ModelServer::answering(answers).await;
        let desk = desk(&server, "openai_chat", &json!({"limits": {"max_attempts": attempts}}));
        let result = run(&desk).await.expect(1).result();
        assert_eq!(result["error"]["code"], "provider_invalid_response", "{result}");
        assert_eq!(server.asked().len(), attempts);
    }
}

#[tokio::test]
async fn row_0_57_a_malformed_reply_is_kept_with_what_was_expected_cut_and_without_secrets() {
    const KEY: &str = "sk-canary-0123456789abcdef";
    let whole = Prepared::json(format!("{{\"oops {KEY} {}", "x".repeat(5000)));
    let event = Prepared::stream(&[&format!("{{\"oops {KEY} {}", "x".repeat(5000))]);
    for (answer, expected) in
        [(whole, "a reply of the API `openai_chat`, as JSON"), (event, "an event of the API `openai_chat`, as JSON")]
    {
        let server = ModelServer::answering([answer]).await;
        let desk = desk(&server, "openai_chat", &json!({"limits": {"max_attempts": 1}}));
        let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
        desk.write("toolgate.yaml", &config.replace("\"api_key\":\"k\"", &format!("\"api_key\":\"{KEY}\"")));

        let result = run(&desk).await.expect(1).result();

        let journal = desk.journal("last");
        let failed = journal.iter().find(|event| event["type"] == "llm.call.failed").unwrap();
        for details in [&failed["error"]["details"], &result["error"]["details"]] {
            let raw = details["raw"].as_str().unwrap();
            assert_eq!(details["expected"], expected, "{failed}");
            assert!(raw.starts_with("{\"oops ") && raw.ends_with("x…") && raw.len() <= 2048, "{raw}");
            assert!(raw.len() > 2000 && !raw.contains("canary"), "{raw}");
        }
        let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
        assert!(shown.contains(&format!("expected {expected}, received:")) && shown.contains("| {\"oops"), "{shown}");
    }
}

#[tokio::test]
async fn an_overflow_told_in_words_leads_to_one_compaction_and_the_run_completes() {
    let chat = |text: &str| {
        let choice = json!({"delta": {"content": text}, "finish_reason": "stop"});
        Prepared::stream(&[&json!({"choices": [choice]}).to_string(), "[DONE]"])
    };
    let said = |text: &str| gemini(&json!([{"text": text}]));
    let refused = |name: &str| Prepared::json(recorded(name)).status(400);
    let gemini_text = refused("providers/gemini/error_400_context.json");
    let vllm_text = refused("providers/openai_compat/error_400_vllm_context.json");
    let nested = json!({"error": serde_json::from_str::<Value>(&recorded("providers/openai_compat/error_400_vllm_context.json")).unwrap()});
    let nested = Prepared::json(nested.to_string()).status(400);
    let in_a_stream = stream("providers/openai_compat/stream_error_lm_studio_context.sse");
    for (api, overflow) in
        [("gemini", gemini_text), ("openai_chat", vllm_text), ("openai_chat", nested), ("openai_chat", in_a_stream)]
    {
        let say = |text: &str| if api == "gemini" { said(text) } else { chat(text) };
        let answers = [say("Noted."), overflow, say("A summary."), say("Done.")];
        let server = ModelServer::answering(answers).await;
        let desk = desk(&server, api, &json!({"compaction": {"keep_tokens": 1}}));
        toolgate(&desk, &["run", "--session", "s", &"long ".repeat(900)]).await.expect(0);
        let result = toolgate(&desk, &["run", "--session", "s", "--json", "Go on"]).await.expect(0).result();
        assert_eq!(result["output"]["text"], "Done.", "{api}: {result}");
        assert_eq!(server.asked().len(), 4, "{api}");
    }
}

#[tokio::test]
async fn an_overflow_that_stays_leads_to_no_second_compaction() {
    let refused = || Prepared::json(recorded("providers/openai_compat/error_400_vllm_context.json")).status(400);
    let choice = json!({"delta": {"content": "Noted."}, "finish_reason": "stop"});
    let said = || Prepared::stream(&[&json!({"choices": [choice]}).to_string(), "[DONE]"]);
    let server = ModelServer::answering([said(), refused(), said(), refused()]).await;
    let desk = desk(&server, "openai_chat", &json!({"compaction": {"keep_tokens": 1}}));
    toolgate(&desk, &["run", "--session", "s", &"long ".repeat(900)]).await.expect(0);
    let result = toolgate(&desk, &["run", "--session", "s", "--json", "Go on"]).await.expect(1).result();
    assert_eq!((&result["error"]["code"], server.asked().len()), (&json!("context_window"), 4), "{result}");
}
