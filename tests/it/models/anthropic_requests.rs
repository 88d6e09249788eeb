//! Requests to Anthropic: the translation of conversations, and the replay of turns.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::chat::{Media, Message, Part, ProviderState, Reply, Role};
use toolgate::core::run::ToolAccess;
use toolgate::core::tool::{Arguments, ExternalTool, ToolCall, Toolset, ToolsetRules};
use toolgate::models::{
    HttpModel, MediaKind, PromptCache, Reasoning, Settings, SettingsError, ToolChoice, anthropic, openai_chat,
};
use toolgate::ports::{Model, ToolFit};

use super::asking::{Ask, ask, calls, result, results, says, user};
use super::fixtures::of;
use super::model_server::{Asked, ModelServer, Prepared};

const HI: &str = r#"{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#;

/// The request of a model with these settings for this conversation.
async fn sent(asked: &Ask, settings: impl FnOnce(Settings) -> Settings) -> Asked {
    let server = ModelServer::answering([Prepared::json(HI)]).await;
    let model = model(settings(Settings::new(&server.base_url, "m")));
    asked.at_home(&server.base_url).of(&mut *model.converse()).await.unwrap();
    server.asked().remove(0)
}

async fn body(asked: &Ask, settings: impl FnOnce(Settings) -> Settings) -> Value {
    sent(asked, settings).await.json()
}

async fn messages_sent(messages: impl IntoIterator<Item = Message>) -> Value {
    body(&ask(messages), |settings| settings).await["messages"].take()
}

fn model(settings: Settings) -> HttpModel {
    anthropic::model(&settings).unwrap()
}

fn message(role: Role, content: Vec<Part>) -> Message {
    Message { role, content, provider_state: None }
}

/// The turn of a reply.
fn turn(reply: Reply) -> Message {
    Message { role: Role::Assistant, content: reply.content, provider_state: reply.provider_state }
}

/// This model's reply to a recorded answer.
async fn reply_to(fixture: &str) -> Reply {
    let fixture = of(&["anthropic"]).into_iter().find(|known| known.id == format!("anthropic/{fixture}")).unwrap();
    let prepared = Prepared {
        headers: fixture.headers.clone().into_iter().collect(),
        pieces: vec![fixture.body()],
        ..Prepared::json("")
    };
    let server = ModelServer::answering([prepared]).await;
    let model = model(Settings { stream: fixture.stream, ..Settings::new(&server.base_url, "m") });
    ask([user("go")]).of(&mut *model.converse()).await.unwrap()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn declared(schema: Value) -> Arc<Toolset> {
    let tool = ExternalTool {
        name: "look".into(),
        description: "does look".into(),
        input_schema: schema,
        result_schema: None,
        priority: 0,
        deadline_s: None,
    };
    Arc::new(Toolset::assemble(&[tool], &[], &ToolsetRules::default()))
}

#[tokio::test]
async fn a_plain_request_has_only_the_required_fields() {
    let asked = sent(&ask([user("Grüezi")]), |settings| Settings { api_key: Some("sk-1".into()), ..settings }).await;
    assert_eq!(asked.path, "/v1/messages");
    assert_eq!(asked.headers["x-api-key"], "sk-1");
    assert_eq!(asked.headers["anthropic-version"], "2023-06-01");
    assert!(!asked.headers.contains_key("authorization"));
    let expected = json!({"model": "m", "max_tokens": 16384, "stream": true,
        "messages": [{"role": "user", "content": [text("Grüezi")]}]});
    assert_eq!(asked.json(), expected);
}

#[tokio::test]
async fn an_address_without_a_version_gets_one() {
    let path = async |base_url: fn(&str) -> String| {
        sent(&ask([user("a")]), |settings| Settings { base_url: base_url(&settings.base_url), ..settings }).await.path
    };
    assert_eq!(path(|with_version| with_version.replace("/v1", "")).await, "/v1/messages");
    assert_eq!(path(|with_version| format!("{with_version}/")).await, "/v1/messages");
    assert_eq!(path(|with_version| with_version.replace("/v1", "/anthropic")).await, "/anthropic/v1/messages");
}

#[tokio::test]
async fn settings_have_the_apis_names_and_extra_fields_win() {
    let mut question = ask([user("a")]).with_tools(&["look"]);
    question.system = "Be brief.".into();
    let body = body(&question, |settings| Settings {
        stream: false,
        temperature: Some(0.5),
        max_tokens: Some(9),
        top_p: Some(0.9),
        parallel_tool_calls: Some(false),
        prompt_cache: PromptCache::OneHour,
        reasoning: Reasoning { effort: Some("low".into()), show: Some(false), ..Reasoning::default() },
        extra: json!({"top_k": 4, "temperature": 0.1}).as_object().unwrap().clone(),
        ..settings
    })
    .await;
    let expected = json!({"model": "m", "max_tokens": 9, "stream": false, "temperature": 0.1, "top_p": 0.9, "top_k": 4,
        "output_config": {"effort": "low"},
        "cache_control": {"type": "ephemeral", "ttl": "1h"}, "system": "Be brief.",
        "messages": [{"role": "user", "content": [text("a")]}],
        "tools": [{"name": "ext_look", "description": "does look", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_thinking_budget_requests_manual_thinking_and_more_tokens() {
    let reasoning = Reasoning { budget_tokens: Some(2000), show: Some(true), effort: None, send_back: None };
    let body = body(&ask([user("a")]), |settings| Settings { reasoning, ..settings }).await;
    let thinking = json!({"type": "enabled", "budget_tokens": 2000, "display": "summarized"});
    assert_eq!((&body["thinking"], &body["max_tokens"]), (&thinking, &json!(18384)));
}

#[tokio::test]
async fn only_visible_thinking_is_requested() {
    for (show, expected) in [(true, Some(json!({"type": "adaptive", "display": "summarized"}))), (false, None)] {
        let reasoning = Reasoning { show: Some(show), ..Reasoning::default() };
        let body = body(&ask([user("a")]), |settings| Settings { reasoning, ..settings }).await;
        assert_eq!(body.get("thinking"), expected.as_ref());
    }
}

#[tokio::test]
async fn a_turn_started_by_another_model_has_no_thinking_budget() {
    let budget =
        |settings| Settings { reasoning: Reasoning { budget_tokens: Some(2000), ..Reasoning::default() }, ..settings };
    let thinks = async |messages: Vec<Message>| body(&ask(messages), budget).await.get("thinking").is_some();
    let own = || async { turn(reply_to("thinking_and_tool_call").await) };
    let answer = || results(&[("toolu_a", "18 °C")]);
    assert!(thinks(vec![user("go")]).await);
    assert!(thinks(vec![user("go"), own().await, answer()]).await);
    assert!(!thinks(vec![user("go"), calls(&["toolu_a"]), answer()]).await);
    assert!(!thinks(vec![user("go"), own().await, answer(), calls(&["b"]), results(&[("b", "1")])]).await);
    assert!(thinks(vec![user("go"), calls(&["toolu_a"]), answer(), says("18 °C"), user("Thanks")]).await);
}

#[tokio::test]
async fn tools_that_may_not_be_called_stay_listed() {
    let asked = || ask([user("a")]).with_tools(&["look"]);
    assert_eq!(body(&asked(), |settings| settings).await.get("tool_choice"), None);
    for tool_access in [ToolAccess::BudgetExhausted, ToolAccess::FinalAnswer] {
        let body = body(&asked().offering(tool_access), |settings| Settings {
            tool_choice: ToolChoice::Required,
            parallel_tool_calls: Some(true),
            ..settings
        })
        .await;
        assert_eq!((&body["tool_choice"], body["tools"].as_array().unwrap().len()), (&json!({"type": "none"}), 1));
    }
    let without = body(&ask([user("a")]).offering(ToolAccess::BudgetExhausted), |settings| settings).await;
    assert_eq!((without.get("tool_choice"), without.get("tools")), (None, None));
}

#[tokio::test]
async fn called_tools_without_a_declaration_get_a_stub() {
    let called = |names: &[&str]| {
        let call = |name: &&str| ToolCall::new(format!("id_{name}"), *name, json!({})).into_part();
        message(Role::Assistant, names.iter().map(call).collect())
    };
    let answered = results(&[("id_b", "1"), ("id_a.x", "2")]);
    let asked = ask([user("go"), called(&["b", "a.x"]), answered, called(&["b"]), results(&[("id_b", "3")])]);
    let stub = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    for settings in [ToolChoice::Auto, ToolChoice::Required] {
        let body = body(&asked, |known| Settings { tool_choice: settings, ..known }).await;
        let names = [&body["messages"][1]["content"][0]["name"], &body["messages"][1]["content"][1]["name"]];
        assert_eq!(names, ["b", "a_x"], "the stubs have the names that the calls are sent with");
        assert_eq!(
            (&body["tools"], &body["tool_choice"]),
            (&json!([stub("a_x"), stub("b")]), &json!({"type": "none"}))
        );
    }
}

#[tokio::test]
async fn a_call_can_be_forced() {
    for (choice, expected) in [
        (ToolChoice::Required, json!({"type": "any"})),
        (ToolChoice::Tool("ext_look".into()), json!({"type": "tool", "name": "ext_look"})),
    ] {
        let asked = ask([user("a")]).with_tools(&["look"]);
        let body = body(&asked, |settings| Settings { tool_choice: choice, ..settings }).await;
        assert_eq!(body["tool_choice"], expected);
    }
}

#[tokio::test]
async fn an_enforceable_output_schema_is_sent_if_configured() {
    let mut asked = ask([user("a")]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    asked.output_schema = Some(schema.clone());
    assert_eq!(body(&asked, |settings| settings).await.get("output_config"), None);

    let structured = |settings| Settings { structured_output: Some(true), ..settings };
    let format = json!({"format": {"type": "json_schema", "schema": schema}});
    assert_eq!(body(&asked, structured).await["output_config"], format);
    let own = json!({"output_config": {"effort": "max"}}).as_object().unwrap().clone();
    let body_of_own = body(&asked, |settings| Settings { extra: own, ..structured(settings) }).await;
    assert_eq!(body_of_own["output_config"], json!({"effort": "max"}));

    asked.output_schema = Some(json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}));
    assert_eq!(body(&asked, structured).await.get("output_config"), None);
}

#[tokio::test]
async fn all_results_of_a_turn_come_first_in_one_message() {
    let answer = vec![
        Part::text("And now?"),
        result("a", "18 °C", false),
        result("b", "timed out", true),
        result("c", "", false),
        result("d", " ", true),
    ];
    let sent = messages_sent([user("go"), calls(&["a", "b", "c", "d"]), message(Role::User, answer)]).await;
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "ext_look", "input": {}});
    let expected = json!([
        {"role": "user", "content": [text("go")]},
        {"role": "assistant", "content": [call("a"), call("b"), call("c"), call("d")]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": [text("18 °C")]},
            {"type": "tool_result", "tool_use_id": "b", "content": [text("timed out")], "is_error": true},
            {"type": "tool_result", "tool_use_id": "c", "content": []},
            {"type": "tool_result", "tool_use_id": "d", "content": [text("[error without a message]")],
                "is_error": true},
            text("And now?"),
        ]},
    ]);
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_turn_of_another_provider_is_sent_without_reasoning() {
    let malformed = Part::ToolUse {
        id: "functions.look:0".into(),
        name: "no such.tool".into(),
        input: Arguments::Malformed("{\"city\": \"Zür".into()),
    };
    let content = vec![
        Part::Reasoning { text: "hm".into() },
        Part::text("Let me look."),
        Part::text("\n"),
        ToolCall::new("a", "ext_look", json!({"city": "東京"})).into_part(),
        malformed,
    ];
    let items = vec![json!({"type": "reasoning", "encrypted_content": "x"})];
    let provider_state =
        Some(ProviderState { wire: "openai_responses".into(), model: "m".into(), origin: None, items });
    let turn = Message { role: Role::Assistant, content, provider_state };
    let sent = messages_sent([user("go"), turn, results(&[("a", "1"), ("functions.look:0", "2")])]).await;
    let id = &sent[1]["content"][2]["id"];
    assert!(id.as_str().unwrap().starts_with("functions_look_0_"));
    let expected = json!({"role": "assistant", "content": [
        text("Let me look."),
        {"type": "tool_use", "id": "a", "name": "ext_look", "input": {"city": "東京"}},
        {"type": "tool_use", "id": id, "name": "no_such_tool", "input": {"INVALID_JSON": "{\"city\": \"Zür"}},
    ]});
    assert_eq!(sent[1], expected);
    assert_eq!(&sent[2]["content"][1]["tool_use_id"], id);
}

#[tokio::test]
async fn an_empty_message_becomes_a_note() {
    let empty = turn(reply_to("empty_end_turn").await);
    assert_eq!(empty.content, []);
    for silent in [empty, says(" \n"), message(Role::Assistant, vec![Part::Reasoning { text: "hm".into() }])] {
        let sent = messages_sent([user("go"), silent, user("again")]).await;
        assert_eq!(sent[1], json!({"role": "assistant", "content": [text("[empty message]")]}));
    }
    let sent = messages_sent([message(Role::User, vec![Part::text("")])]).await;
    assert_eq!(sent[0]["content"], json!([text("[empty message]")]));
}

#[tokio::test]
async fn a_turn_with_reasoning_is_replayed_unchanged() {
    for fixture in ["thinking_and_tool_call", "stream_thinking_two_calls", "unknown_block", "two_tool_calls"] {
        let reply = reply_to(fixture).await;
        let state = reply.provider_state.clone().unwrap();
        assert_eq!((state.wire.as_str(), state.model.as_str()), ("anthropic", "m"));
        let ids: Vec<_> = reply.calls().map(|call| call.id.to_string()).collect();
        let answers: Vec<_> = ids.iter().map(|id| (id.as_str(), "18 °C")).collect();
        let asked = sent(&ask([user("go"), turn(reply), results(&answers)]), |settings| settings).await;
        // Byte by byte: signatures cover the content of a block.
        let blocks = serde_json::to_string(&state.items).unwrap();
        assert!(String::from_utf8(asked.body).unwrap().contains(&blocks), "{fixture}: {blocks}");
    }
    let streamed = reply_to("stream_thinking_two_calls").await.provider_state.unwrap().items;
    let expected = json!([
        {"type": "thinking", "thinking": "Look both up.", "signature": "EqQBsig=="},
        text("Let me look."),
        {"type": "tool_use", "id": "toolu_a", "name": "mcp_get_weather", "input": {"city": "Zürich"}},
        {"type": "tool_use", "id": "toolu_b", "name": "ext_get_weather", "input": {"city": "東京"}},
    ]);
    assert_eq!(Value::Array(streamed), expected);
}

#[tokio::test]
async fn another_model_gets_the_turn_without_signatures() {
    let history = || async {
        [user("go"), turn(reply_to("stream_thinking_two_calls").await), results(&[("toolu_a", "1"), ("toolu_b", "2")])]
    };
    let other = body(&ask(history().await), |settings| Settings { model: "other".into(), ..settings }).await;
    let kinds: Vec<_> =
        other["messages"][1]["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "tool_use", "tool_use"]);

    let hi = Prepared::json(r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#);
    let server = ModelServer::answering([hi]).await;
    let chat = openai_chat::model(&Settings::new(&server.base_url, "m")).unwrap();
    ask(history().await).of(&mut *chat.converse()).await.unwrap();
    let body = String::from_utf8(server.asked().remove(0).body).unwrap();
    assert!(body.contains("Let me look.") && !body.contains("EqQBsig=="), "{body}");
}

#[tokio::test]
async fn a_replaced_id_is_replaced_in_the_replay_only() {
    let mut replaced = turn(reply_to("thinking_and_tool_call").await);
    let Some(Part::ToolUse { id, .. }) = replaced.content.last_mut() else { panic!() };
    *id = "toolu_a_7".into();
    let mut expected = replaced.provider_state.clone().unwrap().items;
    expected[2]["id"] = json!("toolu_a_7");
    let sent = messages_sent([user("go"), replaced, results(&[("toolu_a_7", "1")])]).await;
    assert_eq!(sent[1]["content"], Value::Array(expected));
}

#[tokio::test]
async fn a_call_cut_inside_never_runs_and_is_replayed_in_valid_form() {
    let reply = reply_to("max_tokens_in_tool_use").await;
    assert_eq!(reply.calls().next().unwrap().arguments, Arguments::Malformed("{}".into()));
    let sent = messages_sent([user("go"), turn(reply), results(&[("toolu_a", "not run")])]).await;
    let call = json!({"type": "tool_use", "id": "toolu_a", "name": "mcp_get_weather", "input": {"INVALID_JSON": "{}"}});
    assert_eq!(sent[1]["content"], json!([text("Let"), call]));

    let start = r#"{"type":"message_start","message":{"content":[]}}"#;
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#;
    let piece =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let server = ModelServer::answering([Prepared::stream(&[start, begin, piece, end, stop])]).await;
    let reply = ask([user("go")]).of(&mut *model(Settings::new(&server.base_url, "m")).converse()).await.unwrap();
    assert_eq!(reply.calls().next().unwrap().arguments, Arguments::Malformed("{\"a\":1}".into()));
}

#[tokio::test]
async fn reasoning_without_its_signature_is_not_replayed() {
    let items = vec![json!({"type": "thinking", "thinking": "hm", "signature": ""}), text(""), text("So")];
    let provider_state = Some(ProviderState { wire: "anthropic".into(), model: "m".into(), origin: None, items });
    let cut = Message { role: Role::Assistant, content: vec![Part::text("So")], provider_state };
    let sent = messages_sent([user("go"), cut, user("go on")]).await;
    assert_eq!(sent[1]["content"], json!([text("So")]));
}

#[tokio::test]
async fn images_and_files_are_sent_and_unsupported_ones_are_notes() {
    let media = |media_type: &str, data: Option<&str>, url: Option<&str>| Media {
        media_type: media_type.into(),
        data: data.map(Into::into),
        url: url.map(Into::into),
    };
    let file = |name: &str, media_type: &str, text: Option<&str>, data: Option<&str>| Part::Resource {
        uri: format!("file:///{name}"),
        name: Some(name.into()),
        media_type: Some(media_type.into()),
        text: text.map(Into::into),
        data: data.map(Into::into),
    };
    let content = || {
        vec![
            Part::Image(media("image/png", Some("iVBORw0KGgo="), None)),
            Part::Image(media("image/png", None, Some("https://e.example/x.png"))),
            Part::Image(media("image/tiff", Some("AAAA"), None)),
            Part::Audio(media("audio/wav", Some("AAAA"), None)),
            file("a.pdf", "application/pdf", None, Some("JVBERi0=")),
            file("a.txt", "text/csv", Some("1,2"), None),
            file("a.bin", "application/octet-stream", None, Some("AAAA")),
        ]
    };
    let blocks = json!([
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "image", "source": {"type": "url", "url": "https://e.example/x.png"}},
        text("[image image/tiff, not shown here: its bytes are none of PNG, JPEG, GIF, WebP]"),
        text("[audio audio/wav, not shown here]"),
        {"type": "document", "title": "a.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
        {"type": "document", "title": "a.txt",
            "source": {"type": "text", "media_type": "text/plain", "data": "1,2"}},
        text("[resource file:///a.bin (application/octet-stream), its content is not shown here]"),
    ]);
    assert_eq!(messages_sent([message(Role::User, content())]).await[0]["content"], blocks);

    let in_result = |is_error| Part::ToolResult { tool_use_id: "a".into(), content: content(), is_error };
    let sent = messages_sent([user("go"), calls(&["a"]), message(Role::User, vec![in_result(false)])]).await;
    assert_eq!(sent[2]["content"][0]["content"], blocks);
    let sent = messages_sent([user("go"), calls(&["a"]), message(Role::User, vec![in_result(true)])]).await;
    let of_error = sent[2]["content"][0]["content"].as_array().unwrap();
    assert!(of_error.iter().all(|block| block["type"] == "text"), "an error is only text: {of_error:?}");

    let only_images = |settings| Settings { media: Some([MediaKind::Images].into()), ..settings };
    let sent = body(&ask([message(Role::User, content())]), only_images).await;
    assert_eq!(
        sent["messages"][0]["content"][4],
        text("[resource file:///a.pdf (application/pdf), its content is not shown here]")
    );
    assert_eq!(sent["messages"][0]["content"][5], text("[resource file:///a.txt]\n1,2"));
}

#[tokio::test]
async fn each_turn_extends_the_bytes_of_the_previous_request() {
    let server = ModelServer::answering([
        Prepared::json(
            of(&["anthropic"]).iter().find(|known| known.id == "anthropic/thinking_and_tool_call").unwrap().body(),
        ),
        Prepared::json(HI),
        Prepared::json(HI),
    ])
    .await;
    let mut conversation = model(Settings { stream: false, ..Settings::new(&server.base_url, "m") }).converse();
    let mut asked = ask([user("Weather?")]).with_tools(&["look"]);
    let reply = asked.of(&mut *conversation).await.unwrap();
    assert_eq!(reply.calls().count(), 1);
    asked.messages.extend([turn(reply), results(&[("toolu_a", "18 °C")])].map(Arc::new));
    let reply = asked.of(&mut *conversation).await.unwrap();
    assert_eq!(reply.joined_text(), "hi");
    asked.messages.extend([turn(reply), user("Thanks")].map(Arc::new));
    asked.of(&mut *conversation).await.unwrap();

    let bodies: Vec<Vec<u8>> = server.asked().into_iter().map(|asked| asked.body).collect();
    for pair in bodies.windows(2) {
        let until_end_of_messages = pair[0].windows(9).position(|bytes| bytes == b"],\"tools\"").unwrap();
        assert_eq!(pair[0][..until_end_of_messages], pair[1][..until_end_of_messages]);
    }
    let last: Value = serde_json::from_slice(&bodies[2]).unwrap();
    let told = last["messages"].as_array().unwrap().iter().map(|message| {
        let kinds = message["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap());
        (message["role"].as_str().unwrap(), kinds.collect::<Vec<_>>())
    });
    let expected = [
        ("user", vec!["text"]),
        ("assistant", vec!["thinking", "redacted_thinking", "tool_use"]),
        ("user", vec!["tool_result"]),
        ("assistant", vec!["text"]),
        ("user", vec!["text"]),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_tool_is_strict_only_if_wanted_and_possible() {
    let strict = async |schema: Value, strict_tools| {
        let asked = Ask { tools: declared(schema), ..ask([user("a")]) };
        body(&asked, |settings| Settings { strict_tools, ..settings }).await["tools"][0].get("strict").cloned()
    };
    let closed = || json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
    assert_eq!(strict(closed(), true).await, Some(json!(true)));
    assert_eq!(strict(closed(), false).await, None);
    assert_eq!(strict(json!({"type": "object", "properties": {"a": {"type": "string"}}}), true).await, None);
}

#[test]
fn the_fit_of_a_tool_is_known_before_a_request() {
    let fit = |schema| {
        let tools = declared(schema);
        model(Settings::new("http://h", "m")).fit(tools.iter().next().unwrap())
    };
    assert_eq!(fit(json!({"type": "object"})), ToolFit::Whole);
    assert!(matches!(fit(json!({"anyOf": [{"required": ["a"]}]})), ToolFit::Lossy(lost) if lost.len() == 1));
    assert!(
        matches!(fit(json!({"properties": {"filter[id]": {}}})), ToolFit::Refused(why) if why.contains("filter[id]"))
    );
}

#[tokio::test]
async fn a_rejected_tool_does_not_affect_the_others() {
    let tool = |name: &str, schema: Value| ExternalTool {
        name: name.into(),
        description: String::new(),
        input_schema: schema,
        result_schema: None,
        priority: 0,
        deadline_s: None,
    };
    let external = [tool("bad", json!({"properties": {"$top": {}}})), tool("good", json!({"type": "object"}))];
    let tools = Arc::new(Toolset::assemble(&external, &[], &ToolsetRules::default()));
    let sent = body(&Ask { tools, ..ask([user("a")]) }, |settings| settings).await;
    let names: Vec<_> = sent["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["ext_good"]);
}

#[tokio::test]
async fn a_failed_answer_reports_its_usage() {
    let start = r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":5,"output_tokens":1}}}"#;
    let error = r#"{"type":"error","error":{"type":"billing_error","message":"out of credit"}}"#;
    let server = ModelServer::answering([Prepared::stream(&[start, error])]).await;
    let asked = ask([user("a")]);
    let mut conversation = model(Settings::new(&server.base_url, "m")).converse();
    let failed = conversation.reply(&asked.request(), &|_| {}).await.unwrap_err();
    assert_eq!(failed.failure.code, toolgate::core::error::ErrorCode::ProviderBilling);
    assert_eq!((failed.usage.input_tokens, failed.usage.output_tokens), (Some(5), None));
}

#[test]
fn unsupported_settings_are_rejected() {
    let refused = |settings: Settings| anthropic::model(&settings).unwrap_err();
    let good = || Settings::new("https://h", "m");
    let unsupported = |setting| SettingsError::Unsupported { wire: "Anthropic Messages", setting };
    assert_eq!(refused(Settings { seed: Some(1), ..good() }), unsupported("seed"));
    let audio = Some([MediaKind::Audio].into());
    assert_eq!(refused(Settings { media: audio, ..good() }), unsupported("media of kind audio"));
    for field in ["model", "messages", "system", "stream", "tools", "tool_choice"] {
        let extra = json!({field: 1}).as_object().unwrap().clone();
        assert_eq!(refused(Settings { extra, ..good() }), SettingsError::ReservedField(field.into()));
    }
    let thinking =
        |budget| Settings { reasoning: Reasoning { budget_tokens: Some(budget), ..Reasoning::default() }, ..good() };
    for settings in [
        thinking(1023),
        Settings { max_tokens: Some(2000), ..thinking(2000) },
        Settings { temperature: Some(0.5), ..thinking(2000) },
        Settings { tool_choice: ToolChoice::Required, ..thinking(2000) },
    ] {
        assert!(matches!(refused(settings), SettingsError::Unusable(why) if why.contains("budget_tokens")));
    }
    model(Settings { max_tokens: Some(2001), temperature: Some(1.0), ..thinking(2000) });

    let showing = |show| Settings { reasoning: Reasoning { show: Some(show), ..Reasoning::default() }, ..good() };
    let incompatible = |settings: Settings| {
        let forced = Settings { tool_choice: ToolChoice::Tool("ext_look".into()), ..settings.clone() };
        [Settings { temperature: Some(0.5), ..settings }, forced]
    };
    for settings in incompatible(showing(true)) {
        assert!(matches!(refused(settings), SettingsError::Unusable(why) if why.contains("reasoning.show")));
    }
    for settings in incompatible(showing(false)) {
        model(settings);
    }
    model(Settings { max_tokens: Some(10), temperature: Some(1.0), ..showing(true) });
}

#[test]
fn the_identity_names_the_system_and_the_provider() {
    let identity = |base_url| {
        let model = model(Settings::new(base_url, "claude-x"));
        (model.identity().system.clone(), model.identity().provider.clone())
    };
    assert_eq!(identity("https://api.anthropic.com"), ("anthropic".into(), "anthropic".into()));
    assert_eq!(identity("https://e.example/anthropic").1, "e.example");
}
