//! Requests to the Gemini API: settings, turns, the position of results, and the replay of signed parts.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::chat::{Media, Message, Part, ProviderState, Role, Stop};
use toolgate::core::error::ErrorCode;
use toolgate::core::run::ToolAccess;
use toolgate::core::tool::{Arguments, ExternalTool, ToolCall, Toolset, ToolsetRules};
use toolgate::models::{MediaKind, PromptCache, Reasoning, Settings, SettingsError, ToolChoice, gemini};
use toolgate::ports::{Model, ToolFit};

use super::asking::{Ask, ask, calls, result, results, says, user};
use super::model_server::{Asked, ModelServer, Prepared};

const HI: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}]}"#;

/// The request of a model with these settings for this conversation.
async fn sent(asked: &Ask, settings: impl FnOnce(Settings) -> Settings) -> Asked {
    let server = ModelServer::answering([Prepared::json(HI)]).await;
    let model = gemini::model(&settings(Settings::new(&server.base_url, "m"))).unwrap();
    asked.at_home(&server.base_url).of(&mut *model.converse()).await.unwrap();
    server.asked().remove(0)
}

async fn body(asked: &Ask, settings: impl FnOnce(Settings) -> Settings) -> Value {
    sent(asked, settings).await.json()
}

async fn contents(model: &str, messages: impl IntoIterator<Item = Message>) -> Value {
    body(&ask(messages), |settings| Settings { model: model.into(), ..settings }).await["contents"].take()
}

fn message(role: Role, content: Vec<Part>) -> Message {
    Message { role, content, provider_state: None }
}

/// A turn that `model` wrote with these parts.
fn written(model: &str, content: Vec<Part>, parts: Value) -> Message {
    let items = parts.as_array().unwrap().clone();
    let state = ProviderState { wire: gemini::WIRE.into(), model: model.into(), origin: None, items };
    Message { role: Role::Assistant, content, provider_state: Some(state) }
}

fn call(id: &str, name: &str, arguments: Value) -> Part {
    ToolCall::new(id, name, arguments).into_part()
}

fn response(name: &str, response: Value) -> Value {
    json!({"functionResponse": {"name": name, "response": response}})
}

fn media(media_type: &str, data: Option<&str>, url: Option<&str>) -> Media {
    Media { media_type: media_type.into(), data: data.map(Into::into), url: url.map(Into::into) }
}

fn pdf() -> Part {
    Part::Resource {
        uri: "shop://invoice".into(),
        name: None,
        media_type: Some("application/pdf".into()),
        text: None,
        data: Some("JVBERg==".into()),
    }
}

/// An answer with one candidate.
fn answers(parts: Value, finish: &str) -> Prepared {
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": finish});
    Prepared::json(json!({"candidates": [candidate]}).to_string())
}

#[tokio::test]
async fn a_plain_request_has_only_configured_fields() {
    let asked = sent(&ask([user("Grüezi")]), |settings| settings).await;
    assert_eq!(asked.path, "/v1/models/m:streamGenerateContent");
    assert!(!asked.headers.contains_key("x-goog-api-key"));
    assert_eq!(asked.json(), json!({"contents": [{"role": "user", "parts": [{"text": "Grüezi"}]}]}));
}

#[tokio::test]
async fn a_model_name_may_include_its_collection() {
    for (model, stream, path) in [
        ("models/x", false, "/v1/models/x:generateContent"),
        ("tunedModels/mine", true, "/v1/tunedModels/mine:streamGenerateContent"),
    ] {
        let settings = |settings| Settings { model: model.into(), stream, ..settings };
        assert_eq!(sent(&ask([user("a")]), settings).await.path, path);
    }
}

#[tokio::test]
async fn settings_key_and_extra_fields_have_the_apis_names() {
    let mut question = ask([user("a")]).with_tools(&["look"]);
    question.system = "Be brief.".into();
    let asked = sent(&question, |settings| Settings {
        api_key: Some("k-1".into()),
        stream: false,
        temperature: Some(0.5),
        max_tokens: Some(9),
        top_p: Some(0.9),
        seed: Some(-1),
        reasoning: Reasoning { budget_tokens: Some(64), show: Some(true), effort: None, send_back: None },
        extra: json!({"safetySettings": [], "generationConfig": {"topK": 4, "seed": 2, "thinkingConfig": {"x": 1}}})
            .as_object()
            .unwrap()
            .clone(),
        ..settings
    })
    .await;

    assert_eq!(asked.headers["x-goog-api-key"], "k-1");
    assert!(!asked.headers.contains_key("authorization"));
    let expected = json!({
        "safetySettings": [],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "a"}]}],
        "tools": [{"functionDeclarations": [
            {"name": "ext_look", "description": "does look", "parametersJsonSchema": {"type": "object"}}]}],
        "generationConfig": {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 9, "seed": 2, "topK": 4,
            "thinkingConfig": {"thinkingBudget": 64, "includeThoughts": true, "x": 1}}});
    assert_eq!(asked.json(), expected);
}

#[tokio::test]
async fn an_effort_becomes_a_thinking_level() {
    let reasoning = Reasoning { effort: Some("low".into()), ..Reasoning::default() };
    let body = body(&ask([user("a")]), |settings| Settings { reasoning, ..settings }).await;
    assert_eq!(body["generationConfig"], json!({"thinkingConfig": {"thinkingLevel": "LOW"}}));
}

#[tokio::test]
async fn tools_stay_listed_when_they_may_not_be_called() {
    let required = |settings| Settings { tool_choice: ToolChoice::Required, ..settings };
    let one = |settings| Settings { tool_choice: ToolChoice::Tool("ext_look".into()), ..settings };
    let strict = |settings| Settings { strict_tools: true, ..settings };
    let asked = || ask([user("a")]).with_tools(&["look"]);
    let config = |mut body: Value| body["toolConfig"]["functionCallingConfig"].take();

    assert_eq!(body(&asked(), |settings| settings).await.get("toolConfig"), None);
    assert_eq!(config(body(&asked(), strict).await), json!({"mode": "VALIDATED"}));
    assert_eq!(config(body(&asked(), required).await), json!({"mode": "ANY"}));
    let only = json!({"mode": "ANY", "allowedFunctionNames": ["ext_look"]});
    assert_eq!(config(body(&asked(), one).await), only);
    for tool_access in [ToolAccess::BudgetExhausted, ToolAccess::FinalAnswer] {
        let body = body(&asked().offering(tool_access), required).await;
        assert_eq!(body["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 1);
        assert_eq!(config(body), json!({"mode": "NONE"}));
    }
    let without = body(&ask([user("a")]).offering(ToolAccess::BudgetExhausted), |settings| settings).await;
    assert_eq!((without.get("toolConfig"), without.get("tools")), (None, None));
}

#[tokio::test]
async fn the_output_schema_is_sent_unless_an_older_model_has_tools() {
    let mut plain = ask([user("a")]);
    plain.output_schema = Some(json!({"$schema": "x", "type": "object", "properties": {"a": {"const": "b"}}}));
    let mut with_tools = ask([user("a")]).with_tools(&["look"]);
    with_tools.output_schema = plain.output_schema.clone();
    let model = |model: &str, structured_output| {
        let model = model.to_owned();
        move |settings| Settings { model, structured_output, ..settings }
    };

    let expected = json!({"responseMimeType": "application/json", "responseJsonSchema":
        {"type": "object", "properties": {"a": {"enum": ["b"], "type": "string"}}}});
    assert_eq!(body(&plain, model("gemini-2.5-pro", None)).await["generationConfig"], expected);
    assert_eq!(body(&with_tools, model("gemini-3-pro-preview", None)).await["generationConfig"], expected);
    assert_eq!(body(&with_tools, model("gemini-2.5-pro", Some(true))).await["generationConfig"], expected);
    assert_eq!(body(&with_tools, model("gemini-2.5-pro", None)).await.get("generationConfig"), None);
    assert_eq!(body(&plain, model("gemini-3-pro-preview", Some(false))).await.get("generationConfig"), None);
}

#[tokio::test]
async fn results_have_names_and_the_order_of_the_calls() {
    let asked = vec![
        call("a", "ext_look", json!({"city": "東京"})),
        call("b", "mcp_ping", json!({})),
        call("c", "x", json!({})),
    ];
    let answer = vec![
        Part::text("And now?"),
        result("b", "timed out", true),
        result("a", r#"{"degrees": 18, "sky": ["blue"]}"#, false),
        result("z", "whose?", false),
    ];
    let sent = contents("m", [user("go"), message(Role::Assistant, asked), message(Role::User, answer)]).await;
    let expected = json!([
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [
            {"functionCall": {"name": "ext_look", "args": {"city": "東京"}}},
            {"functionCall": {"name": "mcp_ping", "args": {}}},
            {"functionCall": {"name": "x", "args": {}}}]},
        {"role": "user", "parts": [
            response("ext_look", json!({"output": {"degrees": 18, "sky": ["blue"]}})),
            response("mcp_ping", json!({"error": "timed out"})),
            response("x", json!({"error": "There is no result of this call."})),
            {"text": "And now?"},
            {"text": "[result of a call]\nwhose?"}]},
    ]);
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_result_that_is_not_an_exact_object_becomes_text() {
    for text in [r#"{"id": 12345678901234567}"#, "[1]", "{not json", "", "{\"a\":1} and more"] {
        let sent = contents("m", [user("go"), calls(&["a"]), results(&[("a", text)])]).await;
        assert_eq!(sent[2]["parts"], json!([response("ext_look", json!({"output": text}))]));
    }
}

#[tokio::test]
async fn a_turn_of_this_model_is_replayed_byte_for_byte() {
    let parts = [
        r#"{"text":"Look both up.","thought":true}"#,
        r#"{"functionCall":{"name":"ext_look","args":{"z":1.0,"a":[1e-7,"東京"]},"id":"f1"},"thoughtSignature":"c2lnLTE="}"#,
        r#"{"functionCall":{"name":"ext_look"}}"#,
        r#"{"executableCode":{"language":"PYTHON","code":"1"},"fieldOfTomorrow":null}"#,
        r#"{"text":"","thoughtSignature":"c2lnLTM="}"#,
    ];
    let chunk = |part: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}}}]}}"#);
    let mut events: Vec<String> = parts.iter().map(|part| chunk(part)).collect();
    events.push(chunk(r#"{"text":""}"#));
    events.push(r#"{"candidates":[{"finishReason":"STOP"}],"modelVersion":"m-001"}"#.into());
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let server = ModelServer::answering([Prepared::stream(&events), Prepared::json(HI)]).await;
    let mut conversation = gemini::model(&Settings::new(&server.base_url, "m")).unwrap().converse();
    let mut asked = ask([user("go")]).with_tools(&["look"]);

    let reply = asked.of(&mut *conversation).await.unwrap();
    assert_eq!((reply.stop, reply.model.as_deref()), (Stop::ToolCalls, Some("m-001")));
    let ids: Vec<String> = reply.calls().map(|call| call.id.to_string()).collect();
    assert_eq!(ids, ["f1", "call_2"]);
    // As a journal would restore it.
    let state = serde_json::to_string(&reply.provider_state).unwrap();
    let turn = Message {
        role: Role::Assistant,
        content: reply.content,
        provider_state: serde_json::from_str(&state).unwrap(),
    };
    asked.messages.push(Arc::new(turn));
    asked.messages.push(Arc::new(results(&[("call_2", "two"), ("f1", "one")])));
    asked.of(&mut *conversation).await.unwrap();

    let sent = server.asked().remove(1);
    let text = String::from_utf8(sent.body.clone()).unwrap();
    let turn = format!(r#"{{"role":"model","parts":[{}]}}"#, parts.join(","));
    assert!(text.contains(&turn), "{turn}\nis not in\n{text}");
    let expected = json!([
        {"functionResponse": {"id": "f1", "name": "ext_look", "response": {"output": "one"}}},
        {"functionResponse": {"name": "ext_look", "response": {"output": "two"}}}]);
    assert_eq!(sent.json()["contents"][2]["parts"], expected);
}

#[tokio::test]
async fn a_replaced_id_is_sent_in_its_new_form() {
    let parts = json!([{"functionCall": {"id": "f1", "name": "ext_look", "args": {}}, "thoughtSignature": "c2ln"}]);
    let turn = written("m", vec![call("f1_2", "ext_look", json!({}))], parts);
    let sent = contents("m", [user("go"), turn, results(&[("f1_2", "ok")])]).await;
    let replayed =
        json!([{"functionCall": {"id": "f1_2", "name": "ext_look", "args": {}}, "thoughtSignature": "c2ln"}]);
    assert_eq!(sent[1]["parts"], replayed);
    assert_eq!(sent[2]["parts"][0]["functionResponse"]["id"], "f1_2");
}

#[tokio::test]
async fn another_model_gets_the_turn_without_private_parts() {
    let content = vec![
        Part::Reasoning { text: "hm".into() },
        Part::text("Let me look."),
        call("f1", "ext_look", json!({"a": 1})),
        Part::ToolUse { id: "f2".into(), name: "no such tool".into(), input: Arguments::Malformed("{\"a".into()) },
    ];
    let parts = json!([{"text": "Let me look.", "thoughtSignature": "c2ln"},
        {"functionCall": {"id": "f1", "name": "ext_look", "args": {"a": 1}}, "thoughtSignature": "c2ln"}]);
    let conversation = || {
        let turn = written("gemini-2.5-pro", content.clone(), parts.clone());
        [user("go"), turn, results(&[("f1", "1"), ("f2", "2")])]
    };
    let calls = |signature: Value| {
        let mut first = json!({"functionCall": {"name": "ext_look", "args": {"a": 1}}});
        if !signature.is_null() {
            first["thoughtSignature"] = signature;
        }
        let second = json!({"functionCall": {"name": "_no_such_tool", "args": {"malformed_arguments": "{\"a"}}});
        json!([{"text": "Let me look."}, first, second])
    };
    let answers =
        json!([response("ext_look", json!({"output": "1"})), response("_no_such_tool", json!({"output": "2"}))]);

    let older = contents("gemini-2.0-flash", conversation()).await;
    assert_eq!((&older[1]["parts"], &older[2]["parts"]), (&calls(Value::Null), &answers));
    // Gemini 3 requires a signature on the first call, and has a value for calls of other models.
    let newer = contents("gemini-3-pro-preview", conversation()).await;
    assert_eq!(newer[1]["parts"], calls(json!("skip_thought_signature_validator")));
    assert_eq!(newer[2]["parts"], answers);
}

#[tokio::test]
async fn no_turn_is_empty() {
    let thought = json!([{"text": "hm", "thought": true}]);
    let only_thought = written("m", vec![Part::Reasoning { text: "hm".into() }], thought);
    let sent = contents(
        "m",
        [
            message(Role::User, vec![Part::text("")]),
            message(Role::Assistant, vec![]),
            user("again"),
            only_thought,
            user("?"),
        ],
    )
    .await;
    let nothing = json!([{"text": "[nothing was said]"}]);
    for index in [0, 1, 3] {
        assert_eq!(sent[index]["parts"], nothing, "{index}");
    }
}

#[tokio::test]
async fn media_is_sent_and_unsupported_media_becomes_a_note() {
    let content = vec![
        Part::Image(media("image/png", Some("iVBORw0KGgo="), None)),
        Part::Image(media("image/jpg", None, Some("https://e.example/x.jpg"))),
        Part::Image(media("image/png", None, Some("http://e.example/x.png"))),
        Part::Image(media("image/gif", Some("AAAA"), None)),
        Part::Audio(media("audio/x-wav", Some("BBBB"), None)),
        Part::Audio(media("audio/wav", None, Some("https://e.example/x.wav"))),
        pdf(),
    ];
    let said = |sent: &Value| sent["contents"][0]["parts"].clone();
    let asked = ask([message(Role::User, content)]);
    let expected = json!([
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://e.example/x.jpg"}},
        {"text": "[image image/png at http://e.example/x.png, not shown here]"},
        {"text": "[image image/gif, not shown here: its bytes are none of PNG, JPEG, WebP, HEIC, HEIF]"},
        {"inlineData": {"mimeType": "audio/wav", "data": "BBBB"}},
        {"text": "[audio audio/wav at https://e.example/x.wav, not shown here]"},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
    ]);
    assert_eq!(said(&body(&asked, |settings| settings).await), expected);
    let images = |settings| Settings { media: Some([MediaKind::Images].into()), ..settings };
    let only_images = said(&body(&asked, images).await);
    assert_eq!(only_images[0], expected[0]);
    assert_eq!(only_images[4], json!({"text": "[audio audio/x-wav, not shown here]"}));
    assert_eq!(
        only_images[6],
        json!({"text": "[resource shop://invoice (application/pdf), its content is not shown here]"})
    );
}

#[tokio::test]
async fn media_of_results_is_in_or_after_the_responses() {
    let look = vec![Part::text("see"), Part::Image(media("image/png", Some("iVBORw0KGgo="), None)), pdf()];
    let hear = vec![Part::Audio(media("audio/ogg", Some("BBBB"), None))];
    let result = |id: &str, content| Part::ToolResult { tool_use_id: id.into(), content, is_error: false };
    let answer = message(Role::User, vec![result("a", look), result("b", hear)]);
    let conversation = || [user("go"), calls(&["a", "b"]), answer.clone()];
    let (png, pdf, ogg) = (
        json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
        json!({"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}}),
        json!({"inlineData": {"mimeType": "audio/ogg", "data": "BBBB"}}),
    );

    let mut looked = response("ext_look", json!({"output": "see"}));
    looked["functionResponse"]["parts"] = json!([png, pdf]);
    let heard = response("ext_look", json!({"output": "[attached below]"}));
    let newer = contents("gemini-3.5-flash", conversation()).await;
    assert_eq!(newer[2]["parts"], json!([looked, heard, ogg]));

    let looked = response("ext_look", json!({"output": "see\n[attached below]\n[attached below]"}));
    let older = contents("gemini-2.5-flash", conversation()).await;
    assert_eq!(older[2]["parts"], json!([looked, heard, png, pdf, ogg]));
}

#[tokio::test]
async fn a_long_conversation_sends_the_bytes_of_a_fresh_one() {
    let turns = 5;
    let looks = answers(json!([{"functionCall": {"name": "ext_look"}, "thoughtSignature": "c2ln"}]), "STOP");
    let server = ModelServer::answering(vec![looks; turns * 2]).await;
    let model = gemini::model(&Settings { stream: false, ..Settings::new(&server.base_url, "m") }).unwrap();
    let mut kept = model.converse();
    let mut asked = ask([user("start")]).with_tools(&["look"]);
    for turn in 0..turns {
        let reply = asked.of(&mut *kept).await.unwrap();
        asked.of(&mut *model.converse()).await.unwrap();
        let id = reply.calls().next().unwrap().id;
        let said = Message { role: Role::Assistant, content: reply.content, provider_state: reply.provider_state };
        asked.messages.push(Arc::new(said));
        asked.messages.push(Arc::new(message(Role::User, vec![result(id.as_str(), "done", turn == 2)])));
    }
    let asked = server.asked();
    for pair in asked.chunks(2) {
        assert_eq!(pair[0].body, pair[1].body);
    }
    let last = asked.last().unwrap().json();
    let contents = last["contents"].as_array().unwrap();
    assert_eq!(contents.len(), turns * 2 - 1);
    for (index, content) in contents.iter().enumerate() {
        assert_eq!(content["role"], ["user", "model"][index % 2]);
        assert_eq!(content["parts"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_unfinished_turn_is_requested_again_with_its_token() {
    let said = |text: &str, rest: Value| {
        let mut candidate = json!({"content": {"parts": [{"text": text}]}});
        candidate.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        Prepared::json(json!({"candidates": [candidate]}).to_string())
    };
    let begin = said("One, ", json!({"finishReason": "CONTINUATION", "continuationToken": "dG9rZW4="}));
    let server =
        ModelServer::answering([begin, said("two.", json!({"finishReason": "STOP"})), Prepared::json(HI)]).await;
    let mut conversation = gemini::model(&Settings::new(&server.base_url, "m")).unwrap().converse();
    let mut asked = ask([user("count")]);

    let first = asked.of(&mut *conversation).await.unwrap();
    assert_eq!((first.stop, first.joined_text().as_str()), (Stop::Pause, "One, "));
    let turn = |reply: toolgate::core::chat::Reply| Message {
        role: Role::Assistant,
        content: reply.content,
        provider_state: reply.provider_state,
    };
    let mut turn_so_far = turn(first);
    asked.messages.push(Arc::new(turn_so_far.clone()));
    let second = turn(asked.of(&mut *conversation).await.unwrap());
    // The loop joins two model turns in a row.
    turn_so_far.content.extend(second.content);
    turn_so_far.provider_state.as_mut().unwrap().items.extend(second.provider_state.unwrap().items);
    asked.messages[1] = Arc::new(turn_so_far);
    asked.messages.push(Arc::new(user("Thanks.")));
    asked.of(&mut *conversation).await.unwrap();

    let bodies: Vec<Value> = server.asked().iter().map(Asked::json).collect();
    let question = json!({"role": "user", "parts": [{"text": "count"}]});
    assert_eq!(bodies[1], json!({"contents": [question], "continuationToken": "dG9rZW4="}));
    let whole = json!([question, {"role": "model", "parts": [{"text": "One, "}, {"text": "two."}]},
        {"role": "user", "parts": [{"text": "Thanks."}]}]);
    assert_eq!(bodies[2], json!({ "contents": whole }));
}

#[tokio::test]
async fn a_user_message_sends_the_unfinished_turn_before_it() {
    let paused = written("m", vec![Part::text("One, ")], json!([{"text": "One, "}, {"continuationToken": "dG9rZW4="}]));
    let body = body(&ask([user("count"), paused, user("Stop.")]), |settings| settings).await;
    let expected = json!([{"role": "user", "parts": [{"text": "count"}]}, {"role": "model", "parts": [{"text": "One, "}]},
        {"role": "user", "parts": [{"text": "Stop."}]}]);
    assert_eq!(body, json!({ "contents": expected }));
}

#[tokio::test]
async fn an_image_of_the_model_is_part_of_its_answer() {
    let drawn = json!([{"text": "Here:"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]);
    let server = ModelServer::answering([answers(drawn, "STOP")]).await;
    let mut conversation = gemini::model(&Settings::new(&server.base_url, "m")).unwrap().converse();
    let reply = ask([user("draw")]).of(&mut *conversation).await.unwrap();
    assert_eq!(reply.content, [Part::text("Here:"), Part::Image(media("image/png", Some("iVBORw0KGgo="), None))]);
}

#[tokio::test]
async fn an_unreadable_turn_fails_with_its_usage() {
    let answer = json!({"candidates": [{"finishReason": "TOO_MANY_TOOL_CALLS", "finishMessage": "11 calls"}],
        "usageMetadata": {"promptTokenCount": 5, "thoughtsTokenCount": 2}});
    let server = ModelServer::answering([Prepared::json(answer.to_string())]).await;
    let mut conversation = gemini::model(&Settings::new(&server.base_url, "m")).unwrap().converse();
    let failed = conversation.reply(&ask([user("a")]).request(), &|_| {}).await.unwrap_err();
    assert_eq!((failed.failure.code, failed.failure.retryable), (ErrorCode::ProviderInvalidResponse, true));
    assert!(failed.failure.message.ends_with("(TOO_MANY_TOOL_CALLS): 11 calls"), "{}", failed.failure.message);
    assert_eq!((failed.usage.input_tokens, failed.usage.output_tokens), (Some(5), Some(2)));
}

#[tokio::test]
async fn arguments_nested_too_deep_are_not_kept() {
    let deep = format!("{}1{}", "[".repeat(110), "]".repeat(110));
    let arguments: Value = serde_json::from_str(&format!(r#"{{"a":{deep}}}"#)).unwrap();
    let calling = answers(json!([{"functionCall": {"name": "ext_look", "args": arguments}}]), "STOP");
    let server = ModelServer::answering([calling]).await;
    let mut conversation = gemini::model(&Settings::new(&server.base_url, "m")).unwrap().converse();
    let reply = ask([user("a")]).of(&mut *conversation).await.unwrap();
    assert!(matches!(reply.calls().next().unwrap().arguments, Arguments::Malformed(_)));
    assert_eq!(reply.provider_state, None);
}

#[test]
fn a_tool_is_adapted_to_gemini_in_a_copy() {
    let model = gemini::model(&Settings::new("https://h/v1beta", "m")).unwrap();
    let fit = |input_schema: Value| {
        let tool = ExternalTool {
            name: "look".into(),
            description: String::new(),
            input_schema: input_schema.clone(),
            result_schema: None,
            priority: 0,
            deadline_s: None,
        };
        let tools = Toolset::assemble(&[tool], &[], &ToolsetRules::default());
        let tool = tools.iter().next().unwrap().clone();
        assert_eq!(*tool.input_schema, input_schema);
        model.fit(&tool)
    };
    assert_eq!(fit(json!({"$schema": "x", "type": "object", "properties": {"a": {"type": "string"}}})), ToolFit::Whole);
    let lossy = fit(json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^a"}}}));
    let lost = "#/properties/a/pattern is left out: Gemini does not support it";
    assert_eq!(lossy, ToolFit::Lossy(vec![lost.into()]));
}

#[test]
fn unsupported_settings_are_rejected() {
    let refused = |settings: Settings| gemini::model(&settings).unwrap_err();
    let good = || Settings::new("https://h/v1beta", "m");
    let unsupported = |setting| SettingsError::Unsupported { wire: "Gemini", setting };
    let parallel = Settings { parallel_tool_calls: Some(false), ..good() };
    assert_eq!(refused(parallel), unsupported("parallel_tool_calls"));
    for prompt_cache in [PromptCache::FiveMinutes, PromptCache::OneHour] {
        assert_eq!(refused(Settings { prompt_cache, ..good() }), unsupported("prompt_cache"));
    }
    let both = Reasoning { effort: Some("low".into()), budget_tokens: Some(1), ..Reasoning::default() };
    assert!(matches!(refused(Settings { reasoning: both, ..good() }), SettingsError::Unusable(_)));
    assert!(matches!(refused(Settings { seed: Some(1 << 40), ..good() }), SettingsError::Unusable(_)));
    let extra = |extra: Value| Settings { extra: extra.as_object().unwrap().clone(), ..good() };
    for (field, value) in [
        ("contents", json!({"contents": []})),
        ("tool_config", json!({"tool_config": {}})),
        ("generationConfig.candidateCount", json!({"generationConfig": {"candidateCount": 2}})),
    ] {
        assert_eq!(refused(extra(value)), SettingsError::ReservedField(field.into()));
    }
    assert!(matches!(refused(extra(json!({"generationConfig": 1}))), SettingsError::Unusable(_)));
}

#[tokio::test]
async fn a_text_conversation_keeps_its_roles() {
    let sent = contents("m", [user("a"), says("b"), user("c")]).await;
    let turn = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    assert_eq!(sent, json!([turn("user", "a"), turn("model", "b"), turn("user", "c")]));
}
