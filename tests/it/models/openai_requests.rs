//! Requests to an OpenAI-compatible server: the translation of conversations, and bytes that only grow.

use std::sync::Arc;

use secrecy::SecretString;
use serde_json::{Value, json};
use toolgate::core::chat::{Media, Message, Part, Role};
use toolgate::core::run::ToolAccess;
use toolgate::core::tool::{Arguments, ExternalTool, ToolCall, Toolset, ToolsetRules};
use toolgate::core::trace::Propagation;
use toolgate::models::{MediaKind, Proxy, Reasoning, Settings, SettingsError, ToolChoice, openai_chat};
use toolgate::ports::{Model, ToolFit};

use super::asking::{Ask, ask, calls, result, results, tools, user};
use super::model_server::{Asked, ModelServer, Prepared};

const HI: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

/// The request of a model with these settings for this conversation.
async fn sent(asked: &Ask, settings: impl FnOnce(Settings) -> Settings) -> Asked {
    let server = ModelServer::answering([Prepared::json(HI)]).await;
    let model = openai_chat::model(&settings(Settings::new(&server.base_url, "m"))).unwrap();
    asked.of(&mut *model.converse()).await.unwrap();
    server.asked().remove(0)
}

/// A model server reached under this host: requests and replays depend on the provider.
pub(crate) fn at_host(host: &str, server: &ModelServer, model: &str) -> Settings {
    let address = server.base_url.strip_suffix("/v1").unwrap();
    Settings { proxy: Proxy::Url(address.into()), ..Settings::new(format!("http://{host}/v1"), model) }
}

async fn sent_to(host: &str, asked: &Ask, settings: impl FnOnce(Settings) -> Settings) -> Value {
    let server = ModelServer::answering([Prepared::json(HI)]).await;
    let model = openai_chat::model(&settings(at_host(host, &server, "m"))).unwrap();
    asked.of(&mut *model.converse()).await.unwrap();
    server.asked().remove(0).json()
}

async fn messages_sent(messages: impl IntoIterator<Item = Message>) -> Value {
    sent(&ask(messages), |settings| settings).await.json()["messages"].take()
}

pub(crate) fn message(role: Role, content: Vec<Part>) -> Message {
    Message { role, content, provider_state: None }
}

#[tokio::test]
async fn a_plain_request_has_only_configured_fields() {
    let asked = sent(&ask([user("Grüezi")]), |settings| settings).await;
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.headers["content-type"], "application/json");
    assert!(!asked.headers.contains_key("authorization"));
    let expected = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "Grüezi"}]});
    assert_eq!(asked.json(), expected);
}

#[tokio::test]
async fn trace_context_is_sent_as_configured() {
    let mut question = ask([user("a")]);
    (question.trace.state, question.trace.baggage) = (Some("vendor=1".into()), Some("user=ada".into()));
    let names = ["traceparent", "tracestate", "baggage"];
    for (propagation, sent_along) in [
        (None, [true, true, false]),
        (Some(Propagation::ALL), [true, true, true]),
        (Some(Propagation::NOTHING), [false, false, false]),
    ] {
        let asked = sent(&question, |settings| Settings {
            propagation: propagation.unwrap_or(settings.propagation),
            ..settings
        });
        let headers = asked.await.headers;
        assert_eq!(names.map(|name| headers.contains_key(name)), sent_along, "{propagation:?}");
    }
}

#[tokio::test]
async fn settings_key_headers_and_trace_are_sent() {
    let mut question = ask([user("a")]).with_tools(&["look"]);
    question.system = "Be brief.".into();
    question.trace.state = Some("vendor=1".into());
    let asked = sent(&question, |settings| Settings {
        api_key: Some("sk-1".into()),
        headers: [("x-team".to_owned(), SecretString::from("blue"))].into(),
        stream: false,
        temperature: Some(0.5),
        max_tokens: Some(9),
        top_p: Some(0.9),
        seed: Some(-1),
        parallel_tool_calls: Some(false),
        extra: json!({"top_k": 4}).as_object().unwrap().clone(),
        ..settings
    })
    .await;

    assert_eq!(asked.headers["authorization"], "Bearer sk-1");
    assert_eq!(asked.headers["x-team"], "blue");
    let traceparent = format!("00-{}-{}-01", "ab".repeat(16), "cd".repeat(8));
    assert_eq!(asked.headers["traceparent"], traceparent.as_str());
    assert_eq!(asked.headers["tracestate"], "vendor=1");
    let expected = json!({"model": "m", "stream": false, "temperature": 0.5, "max_tokens": 9, "top_p": 0.9, "seed": -1,
        "top_k": 4, "parallel_tool_calls": false,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}],
        "tools": [{"type": "function", "function":
            {"name": "ext_look", "description": "does look", "parameters": {"type": "object", "properties": {}}}}]});
    assert_eq!(asked.json(), expected);
}

#[tokio::test]
async fn tools_that_may_not_be_called_stay_listed() {
    let asked = ask([user("a")]).with_tools(&["look"]);
    assert_eq!(sent(&asked, |settings| settings).await.json().get("tool_choice"), None);
    for tool_access in [ToolAccess::BudgetExhausted, ToolAccess::FinalAnswer] {
        let body =
            sent(&ask([user("a")]).with_tools(&["look"]).offering(tool_access), |settings| settings).await.json();
        assert_eq!((&body["tool_choice"], body["tools"].as_array().unwrap().len()), (&json!("none"), 1));
    }
    let without = sent(&ask([user("a")]).offering(ToolAccess::BudgetExhausted), |settings| settings).await.json();
    assert_eq!((without.get("tool_choice"), without.get("tools")), (None, None));
}

#[tokio::test]
async fn the_output_schema_is_sent_only_where_the_settings_say_so() {
    let mut asked = ask([user("a")]);
    asked.output_schema = Some(json!({"type": "object"}));
    assert_eq!(sent(&asked, |settings| settings).await.json().get("response_format"), None);
    let body = sent(&asked, |settings| Settings { structured_output: Some(true), ..settings }).await.json();
    let schema = json!({"type": "object", "properties": {}});
    let expected = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": false}});
    assert_eq!(body["response_format"], expected);
}

#[tokio::test]
async fn results_follow_their_calls_before_other_content() {
    let answer = vec![
        result("a", "18 °C", false),
        result("b", "timed out", true),
        result("c", "Error: no such city", true),
        Part::text("And now?"),
    ];
    let sent = messages_sent([user("go"), calls(&["a", "b", "c"]), message(Role::User, answer)]).await;
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "ext_look", "arguments": "{}"}});
    let expected = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b"), call("c")]},
        {"role": "tool", "tool_call_id": "a", "content": "18 °C"},
        {"role": "tool", "tool_call_id": "b", "content": "Error: timed out"},
        {"role": "tool", "tool_call_id": "c", "content": "Error: no such city"},
        {"role": "user", "content": "And now?"},
    ]);
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn an_assistant_turn_is_sent_without_its_reasoning() {
    let malformed = Part::ToolUse {
        id: "b".into(),
        name: "no such.tool".into(),
        input: Arguments::Malformed("{\"city\": \"Zür".into()),
    };
    let turn = vec![
        Part::Reasoning { text: "hm".into() },
        Part::text("Let me look."),
        ToolCall::new("a", "ext_look", json!({"city": "東京"})).into_part(),
        malformed,
    ];
    let sent = messages_sent([user("go"), message(Role::Assistant, turn), results(&[("a", "1"), ("b", "2")])]).await;
    let expected = json!({"role": "assistant", "content": "Let me look.", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "ext_look", "arguments": "{\"city\":\"東京\"}"}},
        {"id": "b", "type": "function",
            "function": {"name": "no_such_tool", "arguments": r#"{"malformed_arguments":"{\"city\": \"Zür"}"#}},
    ]});
    assert_eq!(sent[1], expected);
}

#[tokio::test]
async fn an_empty_assistant_turn_becomes_a_note() {
    let thought = Part::Reasoning { text: "Hm.".into() };
    for content in [vec![], vec![thought], vec![Part::text("")], vec![Part::text(" \n")]] {
        let sent = messages_sent([user("go"), message(Role::Assistant, content), user("again")]).await;
        assert_eq!(sent[1], json!({"role": "assistant", "content": "[nothing was said]"}));
    }
}

#[tokio::test]
async fn images_are_sent_and_unsupported_parts_become_notes() {
    let png = |data: Option<&str>, url: Option<&str>| Media {
        media_type: "image/png".into(),
        data: data.map(Into::into),
        url: url.map(Into::into),
    };
    let audio = Media { media_type: "audio/wav".into(), data: Some("AA==".into()), url: None };
    let embedded = Part::Resource {
        uri: "file:///a.txt".into(),
        name: None,
        media_type: None,
        text: Some("inside".into()),
        data: None,
    };
    let content = vec![
        Part::text("Look:"),
        Part::Image(png(Some("iVBORw0KGgo="), None)),
        Part::Image(png(None, Some("https://e.example/x.png"))),
        Part::Audio(audio),
        embedded,
    ];
    let sent = messages_sent([message(Role::User, content)]).await;
    let expected = json!([
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "image_url", "image_url": {"url": "https://e.example/x.png"}},
        {"type": "text", "text": "[audio audio/wav, not shown here]"},
        {"type": "text", "text": "[resource file:///a.txt]\ninside"},
    ]);
    assert_eq!(sent[0]["content"], expected);

    let in_result = Part::ToolResult {
        tool_use_id: "a".into(),
        content: vec![Part::text("see"), Part::Image(png(Some("iVBORw0KGgo="), None))],
        is_error: false,
    };
    let sent = messages_sent([user("go"), calls(&["a"]), message(Role::User, vec![in_result])]).await;
    assert_eq!(sent[2]["content"], "see\n[image image/png, not shown here]");
}

#[tokio::test]
async fn each_request_extends_the_bytes_of_the_last() {
    let turns = 6;
    let server = ModelServer::answering(vec![Prepared::json(HI); turns * 2]).await;
    let model = openai_chat::model(&Settings { stream: false, ..Settings::new(&server.base_url, "m") }).unwrap();
    let mut kept = model.converse();
    let mut asked = ask([user("start")]).with_tools(&["look", "put"]);
    for turn in 0..turns {
        let id = format!("call_{turn}");
        asked.of(&mut *kept).await.unwrap();
        asked.of(&mut *model.converse()).await.unwrap();
        asked.messages.push(Arc::new(calls(&[&id])));
        asked.messages.push(Arc::new(results(&[(&id, "done")])));
        if turn == 3 {
            asked.tools = tools(&["look"]);
        }
    }
    let bodies: Vec<Vec<u8>> = server.asked().into_iter().map(|asked| asked.body).collect();
    assert_eq!(bodies.len(), turns * 2);
    for pair in bodies.chunks(2) {
        assert_eq!(pair[0], pair[1], "the kept conversation differs from a fresh one");
    }
    for pair in bodies.iter().step_by(2).collect::<Vec<_>>().windows(2) {
        let until_end_of_messages = pair[0].windows(9).position(|bytes| bytes == b"],\"tools\"").unwrap();
        assert_eq!(pair[0][..until_end_of_messages], pair[1][..until_end_of_messages]);
        assert!(pair[1].len() > until_end_of_messages);
    }
    assert_eq!(server.asked().len(), 0);
    assert_eq!(serde_json::from_slice::<Value>(&bodies[turns * 2 - 1]).unwrap()["tools"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_repeated_or_missing_id_becomes_a_unique_one() {
    let calling = |id: &str| {
        let call = json!({"id": id, "function": {"name": "ext_look", "arguments": "{}"}});
        Prepared::json(json!({"choices": [{"message": {"tool_calls": [call]}}]}).to_string())
    };
    let server = ModelServer::answering([calling("call_0"), calling("call_0"), calling("")]).await;
    let mut conversation = openai_chat::model(&Settings::new(&server.base_url, "m")).unwrap().converse();
    let mut asked = ask([user("go")]);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let reply = asked.of(&mut *conversation).await.unwrap();
        let id = reply.calls().next().unwrap().id;
        asked.messages.push(Arc::new(message(Role::Assistant, reply.content)));
        asked.messages.push(Arc::new(message(Role::User, vec![result(id.as_str(), "ok", false)])));
        ids.push(id.to_string());
    }
    assert_eq!(ids, ["call_0", "call_0_2", "call_3"]);
}

#[test]
fn the_identity_names_system_provider_and_settings_without_secrets() {
    let model = openai_chat::model(&Settings {
        api_key: Some("sk-canary".into()),
        headers: [("x-key".to_owned(), SecretString::from("canary"))].into(),
        temperature: Some(0.1),
        extra: json!({"user": "canary"}).as_object().unwrap().clone(),
        ..Settings::new("https://api.openai.com/v1", "gpt-x")
    })
    .unwrap();
    let identity = model.identity();
    assert_eq!(
        (identity.system.as_str(), identity.provider.as_str(), identity.model.as_str()),
        ("openai", "openai", "gpt-x")
    );
    assert_eq!(identity.settings, json!({"stream": true, "temperature": 0.1}));
    assert!(!format!("{model:?}").contains("sk-canary"));
}

#[test]
fn invalid_settings_are_rejected_without_showing_secrets() {
    let refused = |settings: Settings| openai_chat::model(&settings).unwrap_err();
    let good = || Settings::new("https://h/v1", "m");
    assert!(matches!(refused(Settings::new("h/v1", "m")), SettingsError::BaseUrl(_)));
    assert_eq!(refused(Settings { api_key: Some("a\nb".into()), ..good() }), SettingsError::ApiKey);
    let bad_header = [("a b".to_owned(), SecretString::from("canary"))].into();
    assert_eq!(refused(Settings { headers: bad_header, ..good() }), SettingsError::Header("a b".into()));
    let reserved = json!({"messages": []}).as_object().unwrap().clone();
    assert_eq!(refused(Settings { extra: reserved, ..good() }), SettingsError::ReservedField("messages".into()));
}

fn png() -> Part {
    Part::Image(Media { media_type: "image/png".into(), data: Some("iVBORw0KGgo=".into()), url: None })
}

pub(crate) fn pdf() -> Part {
    Part::Resource {
        uri: "file:///reports/q3.pdf".into(),
        name: None,
        media_type: Some("application/pdf".into()),
        text: None,
        data: Some("JVBERi0=".into()),
    }
}

fn result_of(id: &str, content: Vec<Part>) -> Part {
    Part::ToolResult { tool_use_id: id.into(), content, is_error: false }
}

#[tokio::test]
async fn images_of_results_follow_all_results_if_supported() {
    let answer = vec![result_of("a", vec![Part::text("see"), png()]), result("b", "2", false), Part::text("And?")];
    let asked = ask([user("go"), calls(&["a", "b"]), message(Role::User, answer)]);
    let shown = json!([
        {"role": "tool", "tool_call_id": "a", "content": "see\n[shown in the next message]"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": [
            {"type": "text", "text": "[from the result of call a]"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            {"type": "text", "text": "And?"},
        ]},
    ]);
    for host in ["api.openai.com", "x.openai.azure.com", "openrouter.ai"] {
        let sent = sent_to(host, &asked, |settings| settings).await;
        assert_eq!(sent["messages"].as_array().unwrap()[2..], *shown.as_array().unwrap(), "{host}");
    }
    let with_media = |settings| Settings { media: Some([MediaKind::Images].into()), ..settings };
    assert_eq!(sent_to("vllm.example", &asked, with_media).await["messages"][4], shown[2]);
    let noted = sent_to("vllm.example", &asked, |settings| settings).await;
    assert_eq!(noted["messages"][2]["content"], "see\n[image image/png, not shown here]");
    assert_eq!(noted["messages"][4], json!({"role": "user", "content": "And?"}));
}

#[tokio::test]
async fn documents_and_recordings_are_sent_if_supported() {
    let wav = Part::Audio(Media { media_type: "audio/wav".into(), data: Some("UklG".into()), url: None });
    let asked = ask([message(Role::User, vec![pdf(), wav])]);
    let file =
        json!({"type": "file", "file": {"filename": "q3.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}});
    let note = json!({"type": "text",
        "text": "[resource file:///reports/q3.pdf (application/pdf), its content is not shown here]"});
    for (host, expected) in [("api.openai.com", &file), ("openrouter.ai", &file), ("vllm.example", &note)] {
        let sent = sent_to(host, &asked, |settings| settings).await;
        assert_eq!(sent["messages"][0]["content"][0], *expected, "{host}");
    }
    let with_audio = |settings| Settings { media: Some([MediaKind::Audio].into()), ..settings };
    let sent = sent_to("vllm.example", &asked, with_audio).await;
    let audio = json!({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}});
    assert_eq!(sent["messages"][0]["content"], json!([note, audio]));
}

#[tokio::test]
async fn openai_gets_malformed_arguments_and_only_valid_ids() {
    let long = "functions.look:0:".repeat(4);
    let malformed =
        Part::ToolUse { id: long.as_str().into(), name: "ext_look".into(), input: Arguments::Malformed("{\"a".into()) };
    let asked = ask([user("go"), message(Role::Assistant, vec![malformed]), results(&[(&long, "no")])]);
    let sent = sent_to("api.openai.com", &asked, |settings| settings).await;
    let call = &sent["messages"][1]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], "{\"a");
    let id = call["id"].as_str().unwrap();
    assert!(id.len() <= 40 && id.starts_with("functions.look:0:"), "{id}");
    assert_eq!(sent["messages"][2]["tool_call_id"], id);
    let elsewhere = sent_to("vllm.example", &asked, |settings| settings).await;
    assert_eq!(elsewhere["messages"][2]["tool_call_id"], long);
}

#[tokio::test]
async fn reasoning_is_replayed_if_the_server_requires_it() {
    let turn = vec![Part::Reasoning { text: "hm".into() }, ToolCall::new("a", "ext_look", json!({})).into_part()];
    let asked = ask([user("go"), message(Role::Assistant, turn), results(&[("a", "1")]), Message::assistant("so")]);
    for host in ["api.deepseek.com", "api.moonshot.ai", "api.moonshot.cn"] {
        let sent = sent_to(host, &asked, |settings| settings).await;
        let told = [&sent["messages"][1]["reasoning_content"], &sent["messages"][3]["reasoning_content"]];
        assert_eq!(told, ["hm", ""], "{host}");
    }
    for host in ["api.openai.com", "api.groq.com", "notdeepseek.com"] {
        let sent = sent_to(host, &asked, |settings| settings).await;
        assert_eq!(sent["messages"][1].get("reasoning_content"), None, "{host}");
    }
}

/// A conversation of two turns with a server whose first answer is this: the assistant message that it gets back.
async fn sent_back(first: Prepared, model_of_the_second: &str) -> Value {
    sent_back_by(first, ["m", model_of_the_second], Reasoning::default()).await
}

/// The same with these two models and these settings.
async fn sent_back_by(first: Prepared, models: [&str; 2], reasoning: Reasoning) -> Value {
    let server = ModelServer::answering([first, Prepared::json(HI)]).await;
    let settings = |model: &str| Settings { reasoning: reasoning.clone(), ..Settings::new(&server.base_url, model) };
    let ask_of = |model: &str| openai_chat::model(&settings(model)).unwrap();
    let [model_of_the_first, model_of_the_second] = models;
    let mut asked = ask([user("go")]);
    let reply = asked.of(&mut *ask_of(model_of_the_first).converse()).await.unwrap();
    let ids: Vec<String> = reply.calls().map(|call| call.id.to_string()).collect();
    let turn = Message { role: Role::Assistant, content: reply.content, provider_state: reply.provider_state };
    asked.messages.push(Arc::new(turn));
    asked.messages.push(Arc::new(message(Role::User, ids.iter().map(|id| result(id, "ok", false)).collect())));
    asked.of(&mut *ask_of(model_of_the_second).converse()).await.unwrap();
    server.asked().remove(1).json()["messages"][1].take()
}

#[tokio::test]
async fn signatures_and_reasoning_details_go_to_their_author() {
    let signed = json!({"google": {"thought_signature": "c2ln"}});
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "ext_look", "arguments": "{}"}});
    let mut first = call("a");
    first["extra_content"] = signed.clone();
    let details = json!([{"type": "reasoning.text", "text": "Look.", "signature": "s", "index": 0}]);
    let whole = json!({"choices": [{"message":
        {"content": null, "reasoning_details": details, "tool_calls": [first, call("b")]}, "finish_reason": "tool_calls"}]});
    let mut piece = first.clone();
    piece["index"] = json!(0);
    let streamed = Prepared::stream(&[
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"Lo","index":0}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"ok.","signature":"s","index":0}]}}]}"#,
        &json!({"choices": [{"delta": {"tool_calls": [piece]}}]}).to_string(),
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"ext_look","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]);
    for prepared in [Prepared::json(whole.to_string()), streamed] {
        let same = sent_back(prepared.clone(), "m").await;
        assert_eq!(same["reasoning_details"], details);
        assert_eq!(same["tool_calls"], json!([first, call("b")]));
        let other = sent_back(prepared, "n").await;
        assert_eq!((other.get("reasoning_details"), &other["tool_calls"][0]), (None, &call("a")));
    }
}

/// An answer with reasoning in this field and a call, streamed and not.
fn reasoned(field: &str) -> [Prepared; 2] {
    let call = json!({"index": 0, "id": "a", "type": "function", "function": {"name": "ext_look", "arguments": "{}"}});
    let message = json!({field: "The user wants a KPI.", "content": null, "tool_calls": [call]});
    let whole = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]});
    let pieces = ["The user wants", " a KPI."].map(|text| json!({"choices": [{"delta": {field: text}}]}).to_string());
    let call = json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}).to_string();
    [Prepared::json(whole.to_string()), Prepared::stream(&[&pieces[0], &pieces[1], &call, "[DONE]"])]
}

#[tokio::test]
async fn reasoning_content_goes_back_to_deepseek_and_kimi_behind_any_address() {
    for model in ["deepseek-v4-pro", "deepseek/deepseek-v4-pro", "deepseek-ai/DeepSeek-V4-Flash", "kimi-k2-thinking"] {
        for first in reasoned("reasoning_content") {
            let turn = sent_back_by(first, [model, model], Reasoning::default()).await;
            assert_eq!(turn["reasoning_content"], "The user wants a KPI.", "{model}");
        }
    }
    for first in reasoned("reasoning_content") {
        let other = sent_back_by(first, ["deepseek-v4-pro", "deepseek-v4-flash"], Reasoning::default()).await;
        assert_eq!(other.get("reasoning_content"), None, "another model did not write it");
    }
}

#[tokio::test]
async fn reasoning_content_is_not_invented_for_a_server_that_did_not_send_it() {
    for first in reasoned("reasoning") {
        let turn = sent_back_by(first, ["moonshotai/kimi-k2-instruct"; 2], Reasoning::default()).await;
        assert_eq!(turn.get("reasoning_content"), None);
    }
}

#[tokio::test]
async fn a_setting_decides_whether_reasoning_goes_back() {
    let send_back = |send_back| Reasoning { send_back: Some(send_back), ..Reasoning::default() };
    for first in reasoned("reasoning_content") {
        let turn = sent_back_by(first.clone(), ["qwen3"; 2], send_back(true)).await;
        assert_eq!(turn["reasoning_content"], "The user wants a KPI.");
        assert_eq!(
            sent_back_by(first.clone(), ["qwen3"; 2], Reasoning::default()).await.get("reasoning_content"),
            None
        );
        let turn = sent_back_by(first, ["deepseek-v4-pro"; 2], send_back(false)).await;
        assert_eq!(turn.get("reasoning_content"), None);
    }
}

#[tokio::test]
async fn ollama_gets_no_response_format_while_its_model_may_call_tools() {
    let schema = json!({"type": "object", "properties": {"repositories": {"type": "array", "items": {"type": "string"}}}, "required": ["repositories"]});
    let asked = Ask { output_schema: Some(schema), ..ask([user("go")]) };
    let with_tools = asked.clone().with_tools(&["look"]);
    let has_format = |settings: Settings, asked: &Ask| {
        let body = openai_chat::model(&settings).unwrap().body(&asked.request()).unwrap();
        serde_json::from_slice::<Value>(&body).unwrap().get("response_format").is_some()
    };
    for stream in [true, false] {
        let ollama = || Settings { stream, ..Settings::new("http://localhost:11434/v1", "qwen3") };
        assert!(!has_format(ollama(), &with_tools));
        assert!(has_format(ollama(), &asked), "without tools");
        assert!(has_format(ollama(), &with_tools.clone().offering(ToolAccess::BudgetExhausted)), "tool_choice: none");
        assert!(has_format(Settings { structured_output: Some(true), ..ollama() }, &with_tools), "as set");
        assert!(has_format(Settings::new("https://api.openai.com/v1", "m"), &with_tools), "elsewhere as before");
    }
}

#[tokio::test]
async fn unknown_fields_of_a_server_are_not_replayed() {
    // Groq rejects `reasoning` and `annotations` in its own turns.
    let answer = json!({"choices": [{"message": {"content": "hi", "reasoning": "hm", "annotations": []}}]});
    assert_eq!(sent_back(Prepared::json(answer.to_string()), "m").await, json!({"role": "assistant", "content": "hi"}));
}

#[tokio::test]
async fn only_openrouter_gets_its_own_reasoning_object() {
    let reasoning =
        Reasoning { effort: Some("low".into()), budget_tokens: Some(9), show: Some(false), send_back: None };
    let sent = sent_to("openrouter.ai", &ask([user("a")]), |settings| Settings { reasoning, ..settings }).await;
    assert_eq!(sent["reasoning"], json!({"effort": "low", "max_tokens": 9, "exclude": true}));
    let effort = Reasoning { effort: Some("low".into()), ..Reasoning::default() };
    let sent =
        sent_to("api.openai.com", &ask([user("a")]), |settings| Settings { reasoning: effort, ..settings }).await;
    assert_eq!((&sent["reasoning_effort"], sent.get("reasoning")), (&json!("low"), None));
    let shown = Reasoning { show: Some(true), ..Reasoning::default() };
    let refused = openai_chat::model(&Settings { reasoning: shown, ..Settings::new("https://api.openai.com/v1", "m") });
    let expected = SettingsError::Unsupported { wire: "Chat Completions", setting: "reasoning.show" };
    assert_eq!(refused.unwrap_err(), expected);
}

#[tokio::test]
async fn a_tool_choice_is_sent_while_tools_are_available() {
    let function = json!({"type": "function", "function": {"name": "ext_look"}});
    for (tool_choice, expected) in
        [(ToolChoice::Required, json!("required")), (ToolChoice::Tool("ext_look".into()), function)]
    {
        let asked = ask([user("a")]).with_tools(&["look"]);
        let body = sent(&asked, |settings| Settings { tool_choice: tool_choice.clone(), ..settings }).await.json();
        assert_eq!(body["tool_choice"], expected);
        let last = ask([user("a")]).with_tools(&["look"]).offering(ToolAccess::FinalAnswer);
        let body = sent(&last, |settings| Settings { tool_choice, ..settings }).await.json();
        assert_eq!(body["tool_choice"], "none");
    }
}

pub(crate) fn tool(input_schema: Value) -> ExternalTool {
    ExternalTool {
        name: "look".into(),
        description: "does look".into(),
        input_schema,
        result_schema: None,
        priority: 0,
        deadline_s: None,
    }
}

pub(crate) fn toolset(schemas: impl IntoIterator<Item = Value>) -> Arc<Toolset> {
    let number = |(number, schema)| ExternalTool { name: format!("t{number}"), ..tool(schema) };
    let external: Vec<ExternalTool> = schemas.into_iter().enumerate().map(number).collect();
    Arc::new(Toolset::assemble(&external, &[], &ToolsetRules::default()))
}

pub(crate) fn closed() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        "additionalProperties": false})
}

#[tokio::test]
async fn a_tool_is_strict_only_if_wanted_and_possible() {
    let mut asked = ask([user("a")]);
    asked.tools = toolset([closed(), json!({"type": "object"})]);
    let strict = |body: Value| -> Vec<Value> {
        body["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["strict"].clone()).collect()
    };
    assert_eq!(strict(sent(&asked, |settings| settings).await.json()), [json!(null), json!(null)]);
    let body = sent(&asked, |settings| Settings { strict_tools: true, ..settings }).await.json();
    assert_eq!(strict(body), [json!(true), json!(null)]);
}

#[test]
fn dropped_rules_are_reported_and_bad_tools_rejected() {
    let fit = |schema: Value, strict_tools: bool| {
        let settings = Settings { strict_tools, ..Settings::new("http://h", "m") };
        let tools = toolset([schema]);
        openai_chat::model(&settings).unwrap().fit(tools.iter().next().unwrap())
    };
    assert_eq!(fit(closed(), true), ToolFit::Whole);
    assert_eq!(fit(json!({"type": "object"}), false), ToolFit::Whole);
    let not_strict = "It is not declared strict: the root has no `additionalProperties: false`.";
    assert_eq!(fit(json!({"type": "object"}), true), ToolFit::Lossy(vec![not_strict.into()]));
    let merged = "`oneOf` at the root is merged: the rules on which arguments go together are lost.";
    let alternatives = json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    assert_eq!(fit(alternatives, false), ToolFit::Lossy(vec![merged.into()]));
    let refused = fit(json!({"type": "string"}), false);
    assert_eq!(refused, ToolFit::Refused("its schema is not that of an object: its type is \"string\"".into()));
}

#[tokio::test]
async fn an_output_schema_is_strict_if_possible_and_an_object() {
    let mut asked = ask([user("a")]);
    for (schema, strict) in
        [(closed(), Some(true)), (json!({"type": "object"}), Some(false)), (json!({"type": "array"}), None)]
    {
        asked.output_schema = Some(schema);
        let body = sent_to("api.openai.com", &asked, |settings| settings).await;
        assert_eq!(body.get("response_format").and_then(|format| format["json_schema"]["strict"].as_bool()), strict);
    }
}
