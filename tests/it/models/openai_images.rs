//! Image models: requests, requests rejected before they are sent, and answers.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::chat::{Media, Message, Part, Reply, Role, Stop};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::models::{Head, Key, Settings, Timeouts, openai_images};
use toolgate::ports::Model;

use super::asking::{Ask, ask, says, user};
use super::model_server::{Ending, ModelServer, Prepared};

const KEY: &str = "sk-canary-4711-0815-secret";
const PNG: &str = "iVBORw0KGgo=";

fn drawn() -> Prepared {
    let usage = json!({"input_tokens": 9, "output_tokens": 1056, "total_tokens": 1065});
    let data = json!([{"b64_json": PNG}]);
    Prepared::json(json!({"created": 1, "data": data, "output_format": "png", "usage": usage}).to_string())
}

fn settings(server: &ModelServer, extra: Value) -> Settings {
    let extra = extra.as_object().unwrap().clone();
    Settings { api_key: Some(Key::from(KEY)), extra, ..Settings::new(&server.base_url, "gpt-image-2") }
}

async fn answered(prepared: Prepared) -> Result<Reply, Failure> {
    let server = ModelServer::answering([prepared]).await;
    let model = openai_images::model(&settings(&server, json!({}))).unwrap();
    let reply = ask([user("A cat")]).of(&mut *model.converse()).await;
    assert_eq!(server.asked().len(), 1, "one reply is one attempt");
    reply
}

#[tokio::test]
async fn only_the_prompt_and_the_image_options_are_sent() {
    let server = ModelServer::answering([drawn()]).await;
    let extra = json!({"size": "1024x1024", "quality": "low", "background": "opaque", "n": 1});
    let model = openai_images::model(&settings(&server, extra)).unwrap();
    let before = [user("A dog"), says("[an image]"), user("A cat,\n\"asleep\"")];

    let reply = ask(before).of(&mut *model.converse()).await.unwrap();

    let [asked] = &server.asked()[..] else { panic!("one request") };
    assert_eq!(asked.path, "/v1/images/generations");
    assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
    let prompt = "A cat,\n\"asleep\"";
    assert_eq!(
        asked.json(),
        json!({"model": "gpt-image-2", "size": "1024x1024", "quality": "low", "background": "opaque", "n": 1,
               "prompt": prompt})
    );
    let image = Media { media_type: "image/png".into(), data: Some(PNG.into()), url: None };
    assert_eq!((reply.content, reply.stop), (vec![Part::Image(image)], Stop::End));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (Some(9), Some(1056)));
}

#[tokio::test]
async fn unsupported_content_is_rejected_before_a_request() {
    let server = ModelServer::answering([]).await;
    let model = openai_images::model(&settings(&server, json!({}))).unwrap();
    let said = |content| ask([Message { role: Role::User, content, provider_state: None }]);
    let picture = Part::Image(Media::inline("image/png", b"x"));
    let file = Part::Resource { uri: "a.md".into(), name: None, media_type: None, text: Some("x".into()), data: None };
    let cat = || ask([user("A cat")]);
    let refused: [(Ask, &str); 8] = [
        (said(vec![Part::text("Like this"), picture]), "an image"),
        (said(vec![Part::text("Like this"), file]), "a file"),
        (said(vec![Part::text(" \n")]), "needs a prompt"),
        (ask([user("A cat"), says("Here")]), "needs a prompt"),
        (ask([]), "needs a prompt"),
        (cat().with_tools(&["look"]), "does not call tools"),
        (Ask { output_schema: Some(json!({"type": "object"})), ..cat() }, "schema"),
        (Ask { system: "Always blue.".into(), ..cat() }, "takes no instructions"),
    ];
    for (ask, why) in refused {
        let failure = ask.of(&mut *model.converse()).await.unwrap_err();
        assert_eq!((failure.code, failure.retryable), (ErrorCode::Validation, false), "{failure}");
        assert!(failure.message.contains(why), "{why}: {failure}");
    }
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn errors_are_classified_and_a_blocked_image_is_filtered() {
    let blocked = json!({"code": "moderation_blocked", "type": "image_generation_user_error", "message": "No."});
    for (status, error, code) in [
        (400, blocked, ErrorCode::ContentFilter),
        (400, json!({"code": "unknown_parameter", "message": "no such thing"}), ErrorCode::ProviderRejected),
        (401, json!({"message": format!("bad key {KEY}")}), ErrorCode::ProviderAuth),
        (429, json!({"message": format!("{KEY} is too fast")}), ErrorCode::ProviderRateLimit),
        (200, json!({"message": "overloaded", "type": "server_error"}), ErrorCode::ProviderUnavailable),
    ] {
        let prepared = Prepared::json(json!({"error": error}).to_string()).status(status);
        let failure = answered(prepared).await.unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
        assert!(!failure.message.contains("canary"), "{failure}");
    }
}

#[tokio::test]
async fn the_servers_retry_delay_is_reported() {
    let headers = vec![("content-type".into(), "application/json".into()), ("retry-after".into(), "7".into())];
    let failure = answered(Prepared { headers, ..Prepared::json("{}").status(429) }).await.unwrap_err();
    assert_eq!((failure.code, failure.retry_after_ms), (ErrorCode::ProviderRateLimit, Some(7_000)));
}

#[tokio::test]
async fn an_answer_without_an_image_is_invalid() {
    let events = Prepared::stream(&[r#"{"type":"image_generation.completed"}"#]);
    for prepared in [Prepared::json(r#"{"data": []}"#), Prepared::json("<html>"), Prepared::json(""), events] {
        let failure = answered(prepared).await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::ProviderInvalidResponse, "{failure}");
    }
    let cut = answered(drawn().ending(Ending::Break)).await.unwrap_err();
    assert_eq!(cut.code, ErrorCode::ProviderInvalidResponse, "{cut}");
}

#[tokio::test]
async fn only_the_total_deadline_limits_a_slow_image() {
    let slow = Prepared { before_head: Duration::from_millis(300), ..drawn() };
    let server = ModelServer::answering([slow.clone(), slow]).await;
    let (short, long) = (Duration::from_millis(100), Duration::from_secs(20));
    let patient = Timeouts { connect: long, first_token: short, idle: long, total: long };
    for (timeouts, expected) in [(patient, None), (Timeouts { total: short, ..patient }, Some("no complete reply"))] {
        let model = openai_images::model(&Settings { timeouts, ..settings(&server, json!({})) }).unwrap();
        let failure = ask([user("A cat")]).of(&mut *model.converse()).await.err();
        let told = failure.as_ref().map(|failure| failure.message.as_str());
        assert_eq!(told.is_some(), expected.is_some(), "{told:?}");
        assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{told:?}");
    }
}

#[test]
fn an_answer_may_have_64_mebibytes() {
    let model = openai_images::model(&Settings::new("http://images.example", "m")).unwrap();
    let head = Head::new("images.example", 200, |_| Some("application/json"), false, jiff::Timestamp::UNIX_EPOCH);
    let mut answer = model.answer(head);
    let mebibyte = vec![b' '; 1 << 20];
    for _ in 0..64 {
        answer.push(&mebibyte, &mut |_| {}).unwrap();
    }
    let failure = answer.push(b" ", &mut |_| {}).unwrap_err();
    assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderInvalidResponse, false));
    assert!(failure.message.contains("larger than 64 MiB"), "{failure}");
}
