//! What is sent to an OpenAI-compatible server: the translation of conversations, and bytes that only grow.

use std::sync::Arc;

use secrecy::SecretString;
use serde_json::{Value, json};
use toolgate::core::chat::{Media, Message, Part, Role};
use toolgate::core::run::Offer;
use toolgate::core::tool::{Arguments, ToolCall};
use toolgate::models::{Settings, SettingsError, openai_chat};
use toolgate::ports::Model;

use super::asking::{Ask, ask, calls, result, results, tools, user};
use super::model_server::{Asked, ModelServer, Prepared};

const HI: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

/// What the server is asked when a model with these settings is asked this.
async fn sent(asked: &Ask, settings: impl FnOnce(Settings) -> Settings) -> Asked {
    let server = ModelServer::answering([Prepared::json(HI)]).await;
    let model = openai_chat::model(&settings(Settings::new(&server.base_url, "m"))).unwrap();
    asked.of(&mut *model.converse()).await.unwrap();
    server.asked().remove(0)
}

async fn messages_sent(messages: impl IntoIterator<Item = Message>) -> Value {
    sent(&ask(messages), |settings| settings).await.json()["messages"].take()
}

fn message(role: Role, content: Vec<Part>) -> Message {
    Message { role, content, provider_state: None }
}

#[tokio::test]
async fn a_plain_request_holds_what_is_set_and_nothing_else() {
    let asked = sent(&ask([user("Grüezi")]), |settings| settings).await;
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.headers["content-type"], "application/json");
    assert!(!asked.headers.contains_key("authorization"));
    let expected = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "Grüezi"}]});
    assert_eq!(asked.json(), expected);
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
            {"name": "ext_look", "description": "does look", "parameters": {"type": "object"}}}]});
    assert_eq!(asked.json(), expected);
}

#[tokio::test]
async fn tools_that_may_not_be_called_stay_listed() {
    let asked = ask([user("a")]).with_tools(&["look"]);
    assert_eq!(sent(&asked, |settings| settings).await.json().get("tool_choice"), None);
    for offer in [Offer::NoTools, Offer::LastWord] {
        let body = sent(&ask([user("a")]).with_tools(&["look"]).offering(offer), |settings| settings).await.json();
        assert_eq!((&body["tool_choice"], body["tools"].as_array().unwrap().len()), (&json!("none"), 1));
    }
    let without = sent(&ask([user("a")]).offering(Offer::NoTools), |settings| settings).await.json();
    assert_eq!((without.get("tool_choice"), without.get("tools")), (None, None));
}

#[tokio::test]
async fn the_output_schema_is_sent_only_where_the_settings_say_so() {
    let mut asked = ask([user("a")]);
    asked.output_schema = Some(json!({"type": "object"}));
    assert_eq!(sent(&asked, |settings| settings).await.json().get("response_format"), None);
    let body = sent(&asked, |settings| Settings { structured_output: Some(true), ..settings }).await.json();
    let expected = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}});
    assert_eq!(body["response_format"], expected);
}

#[tokio::test]
async fn results_follow_their_calls_one_by_one_and_the_rest_of_the_message_comes_after() {
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
async fn an_assistant_turn_is_sent_back_with_its_text_and_without_its_reasoning() {
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
        {"id": "b", "type": "function", "function": {"name": "no_such_tool", "arguments": "{\"city\": \"Zür"}},
    ]});
    assert_eq!(sent[1], expected);
}

#[tokio::test]
async fn an_empty_assistant_turn_is_sent_as_empty_text() {
    let sent = messages_sent([user("go"), message(Role::Assistant, vec![]), user("again")]).await;
    assert_eq!(sent[1], json!({"role": "assistant", "content": ""}));
}

#[tokio::test]
async fn images_are_sent_as_images_and_what_cannot_be_sent_becomes_a_note() {
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
        Part::Image(png(Some("AAAA"), None)),
        Part::Image(png(None, Some("https://e.example/x.png"))),
        Part::Audio(audio),
        embedded,
    ];
    let sent = messages_sent([message(Role::User, content)]).await;
    let expected = json!([
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://e.example/x.png"}},
        {"type": "text", "text": "[audio audio/wav, not shown here]"},
        {"type": "text", "text": "[resource file:///a.txt]\ninside"},
    ]);
    assert_eq!(sent[0]["content"], expected);

    let in_result = Part::ToolResult {
        tool_use_id: "a".into(),
        content: vec![Part::text("see"), Part::Image(png(Some("AAAA"), None))],
        is_error: false,
    };
    let sent = messages_sent([user("go"), calls(&["a"]), message(Role::User, vec![in_result])]).await;
    assert_eq!(sent[2]["content"], "see\n[image image/png, not shown here]");
}

#[tokio::test]
async fn a_long_conversation_sends_the_bytes_of_a_fresh_one_and_each_request_extends_the_last() {
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
async fn an_id_that_the_server_repeats_or_leaves_out_becomes_one_of_its_own() {
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
fn settings_that_cannot_work_are_refused_without_showing_a_secret() {
    let refused = |settings: Settings| openai_chat::model(&settings).unwrap_err();
    let good = || Settings::new("https://h/v1", "m");
    assert!(matches!(refused(Settings::new("h/v1", "m")), SettingsError::BaseUrl(_)));
    assert_eq!(refused(Settings { api_key: Some("a\nb".into()), ..good() }), SettingsError::ApiKey);
    let bad_header = [("a b".to_owned(), SecretString::from("canary"))].into();
    assert_eq!(refused(Settings { headers: bad_header, ..good() }), SettingsError::Header("a b".into()));
    let reserved = json!({"messages": []}).as_object().unwrap().clone();
    assert_eq!(refused(Settings { extra: reserved, ..good() }), SettingsError::ReservedField("messages".into()));
}
