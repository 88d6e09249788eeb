//! Truncated replies may end inside a call, and an incomplete call must not run: missing arguments look like empty
//! ones, and some tools run on empty arguments.

use serde_json::{Value, json};
use toolgate::core::chat::{Reply, Stop};
use toolgate::core::tool::Arguments;
use toolgate::models::{CallIds, Head, HttpModel, Settings, anthropic, gemini, openai_chat, openai_responses};

/// The reply to a complete answer.
fn read(model: &HttpModel, body: &Value) -> Reply {
    let now = "2026-11-01T00:00:00Z".parse().unwrap();
    let head = Head::new("server", 200, |name| (name == "content-type").then_some("application/json"), false, now);
    let mut answer = model.answer(head);
    answer.push(body.to_string().as_bytes(), &mut |_| {}).unwrap();
    answer.end(&CallIds::default()).unwrap()
}

/// The stop reason of the answer, and for each call whether it would run.
fn calls_that_run(model: &HttpModel, body: &Value) -> (Stop, Vec<bool>) {
    let reply = read(model, body);
    (reply.stop, reply.calls().map(|call| matches!(call.arguments, Arguments::Object(_))).collect())
}

fn settings() -> Settings {
    Settings::new("http://server", "m")
}

#[test]
fn anthropic_never_runs_a_truncated_call() {
    let model = anthropic::model(&settings()).unwrap();
    let call = |input: Value| json!({"type": "tool_use", "id": "", "name": "wipe", "input": input});
    let text = json!({"type": "text", "text": "I would rather not."});
    let answer = |content: Value, reason: &str| json!({"type": "message", "content": content, "stop_reason": reason});
    let run = |content: Value, reason: &str| calls_that_run(&model, &answer(content, reason));
    for (reason, stop) in [
        ("refusal", Stop::Refusal),
        ("max_tokens", Stop::MaxTokens),
        ("model_context_window_exceeded", Stop::ContextWindow),
    ] {
        assert_eq!(run(json!([call(json!({}))]), reason), (stop, vec![false]));
        assert_eq!(run(json!([call(json!({"a": 1}))]), reason), (stop, vec![false]));
        assert_eq!(run(json!([call(json!({})), text]), reason), (stop, vec![false]));
        assert_eq!(run(json!([call(json!({"a": 1})), text]), reason), (stop, vec![true]));
        assert_eq!(run(json!([call(json!({})), call(json!({}))]), reason), (stop, vec![true, false]));
    }
    assert_eq!(run(json!([call(json!({}))]), "tool_use"), (Stop::ToolCalls, vec![true]));
}

#[test]
fn openai_chat_never_runs_a_truncated_call() {
    let model = openai_chat::model(&settings()).unwrap();
    let call = |arguments: &str| json!({"id": "", "function": {"name": "wipe", "arguments": arguments}});
    let answer = |refusal: Value, calls: Value, reason: &str| json!({"choices": [{"message": {"refusal": refusal, "tool_calls": calls}, "finish_reason": reason}]});
    let run = |calls: Value, reason: &str| calls_that_run(&model, &answer(Value::Null, calls, reason));
    for (reason, stop) in [("length", Stop::MaxTokens), ("content_filter", Stop::ContentFilter)] {
        for cut in ["", " ", "\n", "null", "{\"a\""] {
            assert_eq!(run(json!([call(""), call(cut)]), reason), (stop, vec![true, false]), "{cut:?}");
        }
        assert_eq!(run(json!([call("{\"a\": 1}\n")]), reason), (stop, vec![true]));
    }
    let refused = answer(json!("No."), json!([call("")]), "stop");
    assert_eq!(calls_that_run(&model, &refused), (Stop::Refusal, vec![false]));
    assert_eq!(run(json!([call(" ")]), "tool_calls"), (Stop::ToolCalls, vec![true]));
}

#[test]
fn openai_responses_never_runs_a_truncated_call() {
    let model = openai_responses::model(&settings()).unwrap();
    let call = |arguments: Value, status: Value| json!({"type": "function_call", "call_id": "", "name": "wipe", "arguments": arguments, "status": status});
    let incomplete = |reason: &str, output: Value| json!({"status": "incomplete", "incomplete_details": {"reason": reason}, "output": output});
    for (reason, stop) in [("max_output_tokens", Stop::MaxTokens), ("content_filter", Stop::ContentFilter)] {
        let run = |output: Value| calls_that_run(&model, &incomplete(reason, output));
        for cut in [json!(""), json!(" "), json!("null"), json!({}), Value::Null] {
            let output = json!([call(cut.clone(), json!("completed")), call(cut, json!("completed"))]);
            assert_eq!(run(output), (stop, vec![true, false]));
        }
        assert_eq!(run(json!([call(json!("{\"a\":1}"), json!("completed"))])), (stop, vec![true]));
        assert_eq!(run(json!([call(json!("{\"a\":1}"), json!("incomplete"))])), (stop, vec![false]));
    }
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let refused = json!({"status": "completed", "output": [refusal, call(json!(""), json!("completed"))]});
    assert_eq!(calls_that_run(&model, &refused), (Stop::Refusal, vec![false]));
}

#[test]
fn gemini_never_runs_a_truncated_call() {
    let model = gemini::model(&settings()).unwrap();
    let call = |args: Value| json!({"functionCall": {"name": "wipe", "args": args}});
    let run = |parts: Value, reason: &str| {
        calls_that_run(&model, &json!({"candidates": [{"content": {"parts": parts}, "finishReason": reason}]}))
    };
    for (reason, stop) in [("MAX_TOKENS", Stop::MaxTokens), ("SAFETY", Stop::ContentFilter)] {
        assert_eq!(run(json!([call(json!({})), call(Value::Null)]), reason), (stop, vec![true, false]));
        assert_eq!(run(json!([call(json!({"a": 1}))]), reason), (stop, vec![false]));
        assert_eq!(run(json!([call(json!({})), {"text": "Then"}]), reason), (stop, vec![false]));
        assert_eq!(run(json!([call(json!({"a": 1})), {"text": "Then"}]), reason), (stop, vec![true]));
    }
    assert_eq!(run(json!([call(json!({}))]), "STOP"), (Stop::ToolCalls, vec![true]));
}
