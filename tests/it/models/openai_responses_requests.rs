//! Requests to a server with the Responses API, and the replay of its answers.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::chat::{Media, Message, Part, Reply, Role, Stop, Usage};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::core::run::ToolAccess;
use toolgate::core::tool::{Arguments, ToolCall};
use toolgate::models::{MediaKind, PromptCache, Reasoning, Settings, SettingsError, ToolChoice, openai_responses};
use toolgate::ports::{Model, ToolFit};

use super::asking::{Ask, ask, calls, result, results, user};
use super::fixtures::of;
use super::model_server::{Asked, ModelServer, Prepared};
use super::openai_requests::{at_host, closed, message, pdf, toolset};

const HI: &str =
    r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}"#;

async fn sent(asked: &Ask, settings: impl FnOnce(Settings) -> Settings) -> Asked {
    let server = ModelServer::answering([Prepared::json(HI)]).await;
    let model = openai_responses::model(&settings(Settings::new(&server.base_url, "m"))).unwrap();
    asked.at_home(&server.base_url).of(&mut *model.converse()).await.unwrap();
    server.asked().remove(0)
}

async fn sent_to(host: &str, asked: &Ask) -> Value {
    let server = ModelServer::answering([Prepared::json(HI)]).await;
    asked.of(&mut *openai_responses::model(&at_host(host, &server, "m")).unwrap().converse()).await.unwrap();
    server.asked().remove(0).json()
}

async fn input_sent(messages: impl IntoIterator<Item = Message>) -> Value {
    sent(&ask(messages), |settings| settings).await.json()["input"].take()
}

async fn reply(prepared: Prepared) -> Result<Reply, Failure> {
    let server = ModelServer::answering([prepared]).await;
    ask([user("go")]).of(&mut *openai_responses::model(&Settings::new(&server.base_url, "m")).unwrap().converse()).await
}

fn recorded(id: &str) -> Prepared {
    let fixture = of(&["openai_responses"]).into_iter().find(|fixture| fixture.id.ends_with(id)).unwrap();
    let headers = fixture.headers.clone().into_iter().collect();
    Prepared { headers, ..Prepared::json(fixture.body()).status(fixture.status) }
}

fn says(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

#[tokio::test]
async fn a_plain_request_stores_nothing_on_the_server() {
    let asked = sent(&ask([user("Grüezi")]), |settings| settings).await;
    assert_eq!(asked.path, "/v1/responses");
    let expected = json!({"model": "m", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
        "input": [says("Grüezi")]});
    assert_eq!(asked.json(), expected);
}

#[tokio::test]
async fn settings_have_the_apis_names() {
    let mut question = ask([user("a")]).with_tools(&["look"]);
    question.system = "Be brief.".into();
    let reasoning = Reasoning { effort: Some("low".into()), show: Some(true), ..Reasoning::default() };
    let asked = sent(&question, |settings| Settings {
        api_key: Some("sk-1".into()),
        stream: false,
        temperature: Some(0.5),
        max_tokens: Some(9),
        top_p: Some(0.9),
        reasoning,
        parallel_tool_calls: Some(false),
        extra: json!({"truncation": "auto", "max_output_tokens": 10, "text": {"verbosity": "low"},
            "reasoning": {"context": "all_turns"}, "include": []})
        .as_object()
        .unwrap()
        .clone(),
        ..settings
    })
    .await;
    assert_eq!(asked.headers["authorization"], "Bearer sk-1");
    let expected = json!({"model": "m", "stream": false, "store": false, "include": [], "temperature": 0.5,
        "max_output_tokens": 10, "top_p": 0.9, "reasoning": {"effort": "low", "summary": "auto", "context": "all_turns"},
        "truncation": "auto", "instructions": "Be brief.", "parallel_tool_calls": false, "text": {"verbosity": "low"},
        "input": [says("a")],
        "tools": [{"type": "function", "name": "ext_look", "description": "does look", "strict": false,
            "parameters": {"type": "object", "properties": {}}}]});
    assert_eq!(asked.json(), expected);
}

#[tokio::test]
async fn azure_gets_the_key_in_its_own_header() {
    let server = ModelServer::answering([Prepared::json(HI)]).await;
    let settings = Settings { api_key: Some("k".into()), ..at_host("x.openai.azure.com", &server, "m") };
    ask([user("a")]).of(&mut *openai_responses::model(&settings).unwrap().converse()).await.unwrap();
    let asked = server.asked().remove(0);
    assert_eq!((&asked.headers["api-key"], asked.headers.get("authorization")), (&"k".parse().unwrap(), None));
}

#[tokio::test]
async fn a_tool_choice_is_sent_only_while_tools_are_available() {
    let function = json!({"type": "function", "name": "ext_look"});
    for (tool_choice, expected) in [
        (ToolChoice::Auto, None),
        (ToolChoice::Required, Some(json!("required"))),
        (ToolChoice::Tool("ext_look".into()), Some(function)),
    ] {
        let asked = ask([user("a")]).with_tools(&["look"]);
        let body = sent(&asked, |settings| Settings { tool_choice: tool_choice.clone(), ..settings }).await.json();
        assert_eq!(body.get("tool_choice"), expected.as_ref());
        for tool_access in [ToolAccess::BudgetExhausted, ToolAccess::FinalAnswer] {
            let asked = ask([user("a")]).with_tools(&["look"]).offering(tool_access);
            let body = sent(&asked, |settings| Settings { tool_choice: tool_choice.clone(), ..settings }).await.json();
            assert_eq!((&body["tool_choice"], body["tools"].as_array().unwrap().len()), (&json!("none"), 1));
        }
    }
    let without = sent(&ask([user("a")]).offering(ToolAccess::BudgetExhausted), |settings| settings).await.json();
    assert_eq!((without.get("tool_choice"), without.get("tools")), (None, None));
}

#[tokio::test]
async fn outputs_follow_their_calls_before_other_content() {
    let answer = vec![Part::text("And now?"), result("a", "18 °C", false), result("b", "timed out", true)];
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "ext_look", "arguments": "{}"});
    let output = |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let expected = json!([
        says("go"),
        call("a"),
        call("b"),
        output("a", "18 °C"),
        output("b", "Error: timed out"),
        says("And now?")
    ]);
    assert_eq!(input_sent([user("go"), calls(&["a", "b"]), message(Role::User, answer)]).await, expected);
}

#[tokio::test]
async fn a_turn_of_another_model_is_sent_in_order_without_its_reasoning() {
    let turn = vec![
        Part::Reasoning { text: "hm".into() },
        Part::text("Let me look."),
        ToolCall::new("a", "ext_look", json!({"city": "東京"})).into_part(),
        Part::ToolUse { id: "b".into(), name: "no such.tool".into(), input: Arguments::Malformed("{\"c".into()) },
        Part::text(""),
    ];
    let sent = input_sent([user("go"), message(Role::Assistant, turn), results(&[("a", "1"), ("b", "2")])]).await;
    let expected = json!([
        {"type": "message", "role": "assistant", "content": "Let me look."},
        {"type": "function_call", "call_id": "a", "name": "ext_look", "arguments": "{\"city\":\"東京\"}"},
        {"type": "function_call", "call_id": "b", "name": "no_such_tool",
            "arguments": "{\"malformed_arguments\":\"{\\\"c\"}"},
    ]);
    assert_eq!(sent.as_array().unwrap()[1..4], *expected.as_array().unwrap());
}

#[tokio::test]
async fn media_are_sent_if_supported_and_else_become_notes() {
    let png = || Part::Image(Media { media_type: "image/png".into(), data: Some("iVBORw0KGgo=".into()), url: None });
    let with_image = |is_error| Part::ToolResult { tool_use_id: "a".into(), content: vec![png()], is_error };
    let messages = |is_error| {
        [message(Role::User, vec![png(), pdf()]), calls(&["a"]), message(Role::User, vec![with_image(is_error)])]
    };
    let image = json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw0KGgo="});
    let file = json!({"type": "input_file", "filename": "q3.pdf", "file_data": "data:application/pdf;base64,JVBERi0="});
    for host in ["api.openai.com", "x.openai.azure.com"] {
        let body = sent_to(host, &ask(messages(false))).await;
        assert_eq!(body["input"][0]["content"], json!([image, file]), "{host}");
        assert_eq!(body["input"][2]["output"], json!([image]), "{host}");
    }
    let failed = sent_to("api.openai.com", &ask(messages(true))).await;
    assert_eq!(failed["input"][2]["output"], json!([{"type": "input_text", "text": "Error:"}, image]));

    let body = sent_to("vllm.example", &ask(messages(false))).await;
    let note = "[resource file:///reports/q3.pdf (application/pdf), its content is not shown here]";
    assert_eq!(body["input"][0]["content"], json!([image, {"type": "input_text", "text": note}]));
    assert_eq!(body["input"][2]["output"], "[image image/png, not shown here]");
    let with_images = |settings| Settings { media: Some([MediaKind::Images].into()), ..settings };
    let body = sent(&ask(messages(false)), with_images).await.json();
    assert_eq!(body["input"][2]["output"], json!([image]));
}

#[tokio::test]
async fn the_output_schema_is_merged_into_the_text_settings() {
    let mut asked = ask([user("a")]);
    asked.output_schema = Some(closed());
    let format = |schema: Value, strict: bool| json!({"name": "answer", "schema": schema, "strict": strict, "type": "json_schema"});
    assert_eq!(sent_to("api.openai.com", &asked).await["text"], json!({"format": format(closed(), true)}));
    assert_eq!(sent_to("vllm.example", &asked).await.get("text"), None);

    asked.output_schema = Some(json!({"type": "object"}));
    let extra = json!({"text": {"verbosity": "low"}}).as_object().unwrap().clone();
    let settings = |settings| Settings { structured_output: Some(true), extra, ..settings };
    let open = json!({"type": "object", "properties": {}});
    let expected = json!({"verbosity": "low", "format": format(open, false)});
    assert_eq!(sent(&asked, settings).await.json()["text"], expected);

    asked.output_schema = Some(json!({"type": "array", "items": {}}));
    assert_eq!(sent_to("api.openai.com", &asked).await.get("text"), None);
}

#[tokio::test]
async fn a_tool_declares_whether_it_is_strict() {
    let mut asked = ask([user("a")]);
    asked.tools = toolset([closed(), json!({"type": "object"})]);
    let strict = |body: Value| -> Vec<Value> {
        body["tools"].as_array().unwrap().iter().map(|tool| tool["strict"].clone()).collect()
    };
    assert_eq!(strict(sent(&asked, |settings| settings).await.json()), [false, false]);
    let asked_for = |settings| Settings { strict_tools: true, ..settings };
    assert_eq!(strict(sent(&asked, asked_for).await.json()), [true, false]);
}

#[test]
fn an_invalid_tool_is_rejected_alone() {
    let model = openai_responses::model(&Settings::new("http://h", "m")).unwrap();
    let fits: Vec<ToolFit> =
        toolset([json!({"type": "string"}), closed()]).iter().map(|tool| model.fit(tool)).collect();
    let why = "its schema is not that of an object: its type is \"string\"";
    assert_eq!(fits, [ToolFit::Refused(why.into()), ToolFit::Whole]);
}

#[test]
fn unsupported_settings_are_rejected() {
    let refused = |settings: Settings| openai_responses::model(&settings).unwrap_err();
    let good = || Settings::new("https://h/v1", "m");
    let budget = Reasoning { budget_tokens: Some(1), ..Reasoning::default() };
    for (settings, setting) in [
        (Settings { seed: Some(1), ..good() }, "seed"),
        (Settings { reasoning: budget, ..good() }, "reasoning.budget_tokens"),
        (Settings { prompt_cache: PromptCache::FiveMinutes, ..good() }, "prompt_cache"),
        (Settings { prompt_cache: PromptCache::OneHour, ..good() }, "prompt_cache"),
        (Settings { media: Some([MediaKind::Audio].into()), ..good() }, "audio in media"),
    ] {
        assert_eq!(refused(settings), SettingsError::Unsupported { wire: "The Responses API", setting });
    }
    for field in ["store", "input", "previous_response_id"] {
        let extra = [(field.to_owned(), json!(true))].into_iter().collect();
        assert_eq!(refused(Settings { extra, ..good() }), SettingsError::ReservedField(field.into()));
    }
}

/// A run of two turns: the first reply, its results, and the items of the first turn in the second request.
async fn second_input(first: Prepared, change: impl FnOnce(&mut Message), model: &str) -> Vec<Value> {
    let server = ModelServer::answering([first, Prepared::json(HI)]).await;
    let conversing = |model: &str| openai_responses::model(&Settings::new(&server.base_url, model)).unwrap().converse();
    let mut asked = ask([user("go")]);
    let reply = asked.of(&mut *conversing("m")).await.unwrap();
    let mut turn = Message { role: Role::Assistant, content: reply.content, provider_state: reply.provider_state };
    change(&mut turn);
    let ids = turn.content.iter().filter_map(ToolCall::from_part).map(|call| call.id);
    let answers = ids.map(|id| result(id.as_str(), "ok", false)).collect();
    asked.messages.extend([Arc::new(turn), Arc::new(message(Role::User, answers))]);
    asked.of(&mut *conversing(model)).await.unwrap();
    let mut input = server.asked().remove(1).json()["input"].take();
    input.as_array_mut().unwrap().drain(1..).collect()
}

fn output_of(id: &str) -> Vec<Value> {
    let fixture = of(&["openai_responses"]).into_iter().find(|fixture| fixture.id.ends_with(id)).unwrap();
    serde_json::from_slice::<Value>(&fixture.body()).unwrap()["output"].as_array().unwrap().clone()
}

fn answered(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "ok"})
}

#[tokio::test]
async fn reasoning_and_calls_are_replayed_byte_for_byte() {
    let items = output_of("/reasoning_and_two_calls");
    for id in ["/reasoning_and_two_calls", "/stream_reasoning_two_calls"] {
        let sent = second_input(recorded(id), |_| {}, "m").await;
        let text = |items: &[Value]| -> Vec<String> { items.iter().map(Value::to_string).collect() };
        assert_eq!(text(&sent[..3]), text(&items), "{id}");
        assert_eq!(sent[3..], [answered("call_a"), answered("call_b")], "{id}");
    }
}

#[tokio::test]
async fn phases_and_items_of_unknown_type_are_replayed() {
    for id in ["/commentary_phase_and_call", "/unknown_output_item"] {
        let sent = second_input(recorded(id), |_| {}, "m").await;
        assert_eq!(sent[..2], output_of(id), "{id}");
    }
}

#[tokio::test]
async fn another_model_gets_the_turn_without_private_items() {
    let sent = second_input(recorded("/reasoning_and_two_calls"), |_| {}, "another").await;
    let call = |id: &str, name: &str, city: &str| {
        let arguments = json!({"city": city}).to_string();
        json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
    };
    let calls = [call("call_a", "mcp_get_weather", "Zürich"), call("call_b", "ext_get_weather", "東京")];
    assert_eq!(sent[..2], calls);
}

#[tokio::test]
async fn a_replaced_id_is_replaced_in_the_replay() {
    let rename = |turn: &mut Message| {
        for part in &mut turn.content {
            if let Part::ToolUse { id, .. } = part {
                *id = format!("{id}_2").as_str().into();
            }
        }
    };
    let sent = second_input(recorded("/reasoning_and_two_calls"), rename, "m").await;
    let mut items = output_of("/reasoning_and_two_calls");
    items[1]["call_id"] = json!("call_a_2");
    items[2]["call_id"] = json!("call_b_2");
    assert_eq!((&sent[..3], &sent[3..]), (&items[..], &[answered("call_a_2"), answered("call_b_2")][..]));
}

#[tokio::test]
async fn malformed_arguments_are_replayed_as_valid_json() {
    let call =
        json!({"type": "function_call", "call_id": "a", "name": "t", "arguments": "{\"x", "status": "completed"});
    let first = Prepared::json(json!({"status": "completed", "output": [call]}).to_string());
    let sent = second_input(first, |_| {}, "m").await;
    assert_eq!(sent[0]["arguments"], "{\"malformed_arguments\":\"{\\\"x\"}");
}

fn responded(status: &str, reason: Option<&str>, output: Value) -> Prepared {
    let details = reason.map(|reason| json!({"reason": reason}));
    Prepared::json(json!({"status": status, "incomplete_details": details, "output": output}).to_string())
}

#[tokio::test]
async fn a_cut_call_is_neither_run_nor_replayed() {
    let call = |status: Option<&str>, arguments: &str| {
        let mut call = json!({"type": "function_call", "call_id": "a", "name": "wipe", "arguments": arguments});
        if let Some(status) = status {
            call["status"] = json!(status);
        }
        call
    };
    for (cut, text) in
        [(call(Some("incomplete"), "{}"), "{}"), (call(None, ""), ""), (call(Some("in_progress"), ""), "")]
    {
        let whole = call(Some("completed"), "{}");
        let reply = reply(responded("incomplete", Some("max_output_tokens"), json!([whole, cut]))).await.unwrap();
        let arguments: Vec<Arguments> = reply.calls().map(|call| call.arguments).collect();
        assert_eq!(arguments, [Arguments::parse(""), Arguments::Malformed(text.into())]);
        assert_eq!((reply.stop, reply.provider_state), (Stop::MaxTokens, None));
    }
    for id in ["/incomplete_max_tokens", "/stream_incomplete"] {
        assert_eq!(reply(recorded(id)).await.unwrap().provider_state, None, "{id}");
    }
}

#[tokio::test]
async fn only_encrypted_or_readable_reasoning_is_replayed() {
    let text = json!({"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "hi"}]});
    for (reasoning, is_kept) in [
        (json!({"type": "reasoning", "id": "rs_1", "summary": []}), false),
        (json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null}), false),
        (json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}), true),
        (json!({"type": "reasoning", "id": "rs_1", "content": [{"type": "reasoning_text", "text": "hm"}]}), true),
    ] {
        let reply = reply(responded("completed", None, json!([reasoning, text]))).await.unwrap();
        assert_eq!(reply.provider_state.is_some(), is_kept, "{reasoning}");
    }
}

#[tokio::test]
async fn missing_indexes_items_and_statuses_are_tolerated() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "t", "arguments": {"x": 1}});
    let done = |item: Value, index: Option<u64>| {
        json!({"type": "response.output_item.done", "item": item, "output_index": index}).to_string()
    };
    let completed = |output: Value| json!({"type": "response.completed", "response": {"output": output}}).to_string();
    for events in [
        vec![done(call("a"), None), done(call("b"), None), completed(json!([]))],
        vec![done(call("a"), Some(0)), done(call("b"), Some(0)), completed(json!(null))],
        vec![done(call("b"), Some(1)), done(call("a"), Some(0)), completed(json!([]))],
        vec![completed(json!([call("a"), call("b")]))],
        vec![done(call("a"), Some(0)), completed(json!([call("a"), call("b")]))],
    ] {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let reply = reply(Prepared::stream(&events)).await.unwrap();
        let ids: Vec<String> = reply.calls().map(|call| call.id.to_string()).collect();
        assert_eq!((ids, reply.stop), (vec!["a".to_owned(), "b".to_owned()], Stop::ToolCalls), "{events:?}");
    }
}

#[tokio::test]
async fn text_may_come_in_fragments_only_but_calls_may_not() {
    let delta = r#"{"type":"response.output_text.delta","delta":"hi"}"#;
    let call = r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"a","name":"t"}}"#;
    let completed = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
    let spoken = reply(Prepared::stream(&[delta, delta, completed])).await.unwrap();
    assert_eq!((spoken.joined_text().as_str(), spoken.provider_state), ("hihi", None));
    let failure = reply(Prepared::stream(&[delta, call, completed])).await.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderInvalidResponse, true));
}

#[tokio::test]
async fn an_end_mark_without_an_end_is_a_cut_reply() {
    let delta = r#"{"type":"response.output_text.delta","delta":"hi"}"#;
    for prepared in [
        Prepared::stream(&[delta, "[DONE]"]),
        Prepared::json(r#"{"status":"in_progress","output":[]}"#),
        Prepared::json(r#"{"id":"resp_1"}"#),
    ] {
        let failure = reply(prepared).await.unwrap_err();
        assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderInvalidResponse, true), "{failure}");
    }
}

#[tokio::test]
async fn a_failed_response_reports_its_usage() {
    let response = json!({"status": "failed", "error": {"code": "server_error", "message": "boom"},
        "usage": {"input_tokens": 5, "output_tokens": 2}});
    let streamed = json!({"type": "response.failed", "response": response}).to_string();
    for prepared in [Prepared::stream(&[&streamed]), Prepared::json(response.to_string())] {
        let server = ModelServer::answering([prepared]).await;
        let mut conversation = openai_responses::model(&Settings::new(&server.base_url, "m")).unwrap().converse();
        let failed = conversation.reply(&ask([user("go")]).request(), &|_| {}).await.unwrap_err();
        assert_eq!(failed.failure.code, ErrorCode::ProviderUnavailable);
        assert_eq!(failed.usage, Usage { input_tokens: Some(5), output_tokens: Some(2), ..Usage::default() });
    }
}

#[tokio::test]
async fn errors_of_a_response_are_classified_by_their_code() {
    for (error, code) in [
        (json!({"code": "invalid_prompt"}), ErrorCode::ContentFilter),
        (json!({"code": "image_content_policy_violation"}), ErrorCode::ContentFilter),
        (json!({"code": "invalid_base64_image"}), ErrorCode::ProviderRejected),
        (json!({"code": "failed_to_download_image"}), ErrorCode::ProviderRejected),
        (json!({"code": "data_residency_mismatch"}), ErrorCode::ProviderRejected),
        (json!({"code": "rate_limit_exceeded"}), ErrorCode::ProviderRateLimit),
        (json!({"code": "insufficient_quota"}), ErrorCode::ProviderBilling),
        (json!(null), ErrorCode::ProviderUnavailable),
    ] {
        let failed = Prepared::json(json!({"status": "failed", "error": error}).to_string());
        let failure = reply(failed).await.unwrap_err();
        assert_eq!((failure.code, failure.retryable), (code, code.is_retryable()), "{error}");
    }
}

#[tokio::test]
async fn events_of_unknown_type_may_hold_anything() {
    let strange = r#"{"type":"response.new.thing","response":"resp_1","output_index":"x","item":3,"summary_index":{}}"#;
    let fixture = of(&["openai_responses"]).into_iter().find(|fixture| fixture.id.ends_with("/stream_text")).unwrap();
    let mut body = format!("data: {strange}\n\n").into_bytes();
    body.extend(fixture.body());
    let reply = reply(Prepared { pieces: vec![body], ..Prepared::stream(&[]) }).await.unwrap();
    assert_eq!(reply.joined_text(), "It is 18 °C. 🙂");
}

#[tokio::test]
async fn each_request_extends_the_bytes_of_the_last() {
    let turns = 4;
    let server = ModelServer::answering(vec![recorded("/reasoning_and_two_calls"); turns * 2]).await;
    let model = openai_responses::model(&Settings::new(&server.base_url, "m")).unwrap();
    let mut kept = model.converse();
    let mut asked = ask([user("start")]).with_tools(&["look"]);
    for _ in 0..turns {
        let reply: Reply = asked.of(&mut *kept).await.unwrap();
        asked.of(&mut *model.converse()).await.unwrap();
        let answers = reply.calls().map(|call| result(call.id.as_str(), "done", false)).collect();
        let turn = Message { role: Role::Assistant, content: reply.content, provider_state: reply.provider_state };
        asked.messages.extend([Arc::new(turn), Arc::new(message(Role::User, answers))]);
    }
    let asked = server.asked();
    let bodies: Vec<&[u8]> = asked.iter().map(|asked| asked.body.as_slice()).collect();
    for pair in bodies.chunks(2) {
        assert_eq!(pair[0], pair[1], "the kept conversation differs from a fresh one");
    }
    for pair in bodies.iter().step_by(2).collect::<Vec<_>>().windows(2) {
        let until_end_of_input = pair[0].windows(9).position(|bytes| bytes == b"],\"tools\"").unwrap();
        assert!(pair[1].starts_with(&pair[0][..until_end_of_input]));
    }
    let input = asked.last().unwrap().json()["input"].take();
    let ids = |name: &str| -> Vec<Value> {
        let items = input.as_array().unwrap().iter().filter(|item| item["type"] == name);
        items.map(|item| item["call_id"].clone()).collect()
    };
    // The recorded answer has the same ids each time; the calls of the conversation have unique ones, each with its
    // output.
    assert_eq!(ids("function_call"), ids("function_call_output"));
    assert_eq!(
        ids("function_call").into_iter().map(|id| id.to_string()).collect::<std::collections::BTreeSet<_>>().len(),
        6
    );
}
