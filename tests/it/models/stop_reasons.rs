//! Stop reasons: an answer without calls is complete only if its provider says so.

use serde_json::{Value, json};
use toolgate::core::chat::{Reply, Stop};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::models::{CallIds, Head, HttpModel, Settings, anthropic, gemini, openai_chat, openai_responses};

type Read = Result<(Stop, String), Failure>;

/// The reply to a whole body, or to a stream of these events.
fn read(model: &HttpModel, content_type: &str, body: &str) -> Read {
    let now = "2026-11-01T00:00:00Z".parse().unwrap();
    let head = Head::new("server", 200, |name| (name == "content-type").then_some(content_type), false, now);
    let mut answer = model.answer(head);
    answer.push(body.as_bytes(), &mut |_| {})?;
    let reply: Reply = answer.end(&CallIds::default()).map_err(|failed| failed.failure)?;
    Ok((reply.stop, reply.joined_text()))
}

fn whole(model: &HttpModel, body: &Value) -> Read {
    read(model, "application/json", &body.to_string())
}

fn streamed(model: &HttpModel, events: &[Value]) -> Read {
    let lines =
        events.iter().map(|event| format!("data: {}\n\n", event.as_str().map_or(event.to_string(), Into::into)));
    read(model, "text/event-stream", &lines.collect::<String>())
}

fn settings() -> Settings {
    Settings::new("http://server", "m")
}

#[track_caller]
fn assert_unreadable(read: Read, why: &str) {
    let failure = read.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderInvalidResponse, true), "{failure}");
    assert!(failure.message.contains(why), "{failure}");
}

fn ends(stop: Stop) -> Read {
    Ok((stop, "Searching.".into()))
}

#[test]
fn openai_chat_rejects_a_reply_that_announces_calls_and_has_none() {
    let model = openai_chat::model(&settings()).unwrap();
    for reason in ["tool_calls", "function_call"] {
        let (said, end) = (json!({"content": "Searching."}), json!(reason));
        assert_unreadable(whole(&model, &json!({"choices": [{"message": said, "finish_reason": end}]})), reason);
        let events = [json!({"choices": [{"delta": said}]}), json!({"choices": [{"delta": {}, "finish_reason": end}]})];
        assert_unreadable(streamed(&model, &events), reason);
    }
}

#[test]
fn openai_chat_without_a_finish_reason_is_cut_off_unless_the_server_never_has_one() {
    let model = openai_chat::model(&settings()).unwrap();
    let said = json!({"content": "Searching."});
    for empty in [Value::Null, json!("")] {
        let whole = whole(&model, &json!({"choices": [{"message": said, "finish_reason": empty}]}));
        assert_unreadable(whole, "cut off");
        let events = [json!({"choices": [{"delta": said, "finish_reason": empty}]}), json!("[DONE]")];
        assert_unreadable(streamed(&model, &events), "`finish_reason`");
    }
    assert_eq!(whole(&model, &json!({"choices": [{"message": said}]})), ends(Stop::Unknown));
    assert_eq!(streamed(&model, &[json!({"choices": [{"delta": said}]}), json!("[DONE]")]), ends(Stop::Unknown));
}

#[test]
fn openai_chat_does_not_run_a_last_call_without_arguments_in_a_reply_without_a_finish_reason() {
    let model = openai_chat::model(&settings()).unwrap();
    let call = |index: u64, arguments: &str| json!({"index": index, "id": format!("c{index}"), "function": {"name": "wipe", "arguments": arguments}});
    let delta = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": null}]});
    let events = [delta(call(0, "{}")), delta(call(1, "")), json!("[DONE]")];
    let lines: String = events
        .iter()
        .map(|event| format!("data: {}\n\n", event.as_str().map_or(event.to_string(), Into::into)))
        .collect();
    let head = Head::new("server", 200, |_| None, true, "2026-11-01T00:00:00Z".parse().unwrap());
    let mut answer = model.answer(head);
    answer.push(lines.as_bytes(), &mut |_| {}).unwrap();
    let reply = answer.end(&CallIds::default()).unwrap();
    let run: Vec<bool> = reply.calls().map(|call| call.arguments.as_object().is_some()).collect();
    assert_eq!((reply.stop, run), (Stop::ToolCalls, vec![true, false]));
}

#[test]
fn anthropic_rejects_a_reply_that_announces_calls_and_has_none() {
    let model = anthropic::model(&settings()).unwrap();
    let text = json!({"type": "text", "text": "Searching."});
    assert_unreadable(whole(&model, &json!({"content": [text], "stop_reason": "tool_use"})), "tool_use");
    assert_unreadable(streamed(&model, &anthropic_stream(&json!({"stop_reason": "tool_use"}))), "tool_use");
}

#[test]
fn anthropic_without_a_stop_reason_is_cut_off_unless_the_server_never_has_one() {
    let model = anthropic::model(&settings()).unwrap();
    let text = json!({"type": "text", "text": "Searching."});
    assert_unreadable(whole(&model, &json!({"content": [text], "stop_reason": null})), "`stop_reason`");
    assert_unreadable(streamed(&model, &anthropic_stream(&json!({"stop_reason": null}))), "`stop_reason`");
    assert_eq!(whole(&model, &json!({"content": [text]})), ends(Stop::Unknown));
    assert_eq!(streamed(&model, &anthropic_stream(&json!({}))), ends(Stop::Unknown));
}

fn anthropic_stream(end: &Value) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"content": [], "stop_reason": null}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Searching."}}),
        json!({"type": "message_delta", "delta": end}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn openai_responses_rejects_a_reply_that_announces_calls_and_has_none() {
    let model = openai_responses::model(&settings()).unwrap();
    let reasoning = json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look."}]});
    let events = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "name": "look"}}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [reasoning]}}),
    ];
    assert_unreadable(streamed(&model, &events), "announces a tool call");
}

#[test]
fn openai_responses_without_a_status_states_no_stop_reason() {
    let model = openai_responses::model(&settings()).unwrap();
    let said = json!([{"type": "message", "content": [{"type": "output_text", "text": "Searching."}]}]);
    assert_eq!(whole(&model, &json!({"output": said})), ends(Stop::Unknown));
    assert_eq!(whole(&model, &json!({"output": said, "status": "completed"})), ends(Stop::End));
}

#[test]
fn gemini_without_a_finish_reason_is_cut_off_or_states_none() {
    let model = gemini::model(&settings()).unwrap();
    let candidate = |reason: Value| {
        let mut candidate = json!({"content": {"parts": [{"text": "Searching."}]}});
        candidate.as_object_mut().unwrap().extend(reason.as_object().unwrap().clone());
        json!({"candidates": [candidate]})
    };
    assert_unreadable(streamed(&model, &[candidate(json!({}))]), "cut off");
    assert_unreadable(whole(&model, &candidate(json!({"finishReason": null}))), "`finishReason`");
    assert_unreadable(
        whole(&model, &candidate(json!({"finishReason": "UNEXPECTED_TOOL_CALL"}))),
        "UNEXPECTED_TOOL_CALL",
    );
    assert_eq!(whole(&model, &candidate(json!({}))), ends(Stop::Unknown));
    assert_eq!(whole(&model, &candidate(json!({"finishReason": "FINISH_REASON_UNSPECIFIED"}))), ends(Stop::Unknown));
}
