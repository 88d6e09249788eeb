//! HTTP side of the OpenAI-compatible adapter: fragments, deadlines, broken connections, and secrets.

use std::time::Duration;

use secrecy::SecretString;
use serde_json::json;
use toolgate::core::chat::{Part, Reply, Stop};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::core::lifecycle::Delta;
use toolgate::models::{Key, Settings, Timeouts, openai_chat};
use toolgate::ports::Model;

use super::asking::{ask, user};
use super::model_server::{Ending, ModelServer, Prepared};

const LO: &str = r#"{"choices":[{"delta":{"content":"lo"}}]}"#;
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

fn quick() -> Timeouts {
    let (short, long) = (Duration::from_millis(150), Duration::from_secs(20));
    Timeouts { connect: long, first_token: short, idle: short, total: long }
}

async fn reply(
    prepared: Prepared,
    settings: impl FnOnce(Settings) -> Settings,
) -> (Result<Reply, Failure>, Vec<Delta>) {
    let server = ModelServer::answering([prepared]).await;
    let model = openai_chat::model(&settings(Settings::new(&server.base_url, "m"))).unwrap();
    let outcome = ask([user("go")]).watched(&mut *model.converse()).await;
    assert_eq!(server.asked().len(), 1, "one reply is one attempt");
    outcome
}

async fn failure(prepared: Prepared) -> Failure {
    reply(prepared, |settings| Settings { timeouts: quick(), ..settings }).await.0.unwrap_err()
}

#[tokio::test]
async fn fragments_arrive_in_order_and_the_reply_is_complete() {
    let think = r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#;
    let hel = r#"{"id":"r1","model":"m-1","choices":[{"delta":{"content":"Hel"}}]}"#;
    let (reply, deltas) = reply(Prepared::stream(&[think, hel, LO, STOP, "[DONE]"]), |settings| settings).await;
    let text = |text: &str| Delta::Text { text: text.into() };
    assert_eq!(deltas, [Delta::Reasoning { text: "hm".into() }, text("Hel"), text("lo")]);
    let reply = reply.unwrap();
    assert_eq!(reply.joined_text(), "Hello");
    assert_eq!((reply.model.as_deref(), reply.response_id.as_deref()), (Some("m-1"), Some("r1")));
    assert!(reply.first_token_ms.is_some());
}

#[tokio::test]
async fn an_unstreamed_reply_has_no_first_token_and_no_fragments() {
    let body = json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).to_string();
    let (reply, deltas) = reply(Prepared::json(body), |settings| Settings { stream: false, ..settings }).await;
    assert_eq!((reply.unwrap().first_token_ms, deltas.len()), (None, 0));
}

#[tokio::test]
async fn a_conversation_keeps_its_connection_from_turn_to_turn() {
    let whole = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
    let streamed = Prepared::stream(&[LO, STOP, "[DONE]"]);
    let refused = Prepared::json(r#"{"error":{"message":"no"}}"#).status(400);
    let server =
        ModelServer::answering([streamed.clone(), streamed, Prepared::json(whole), refused, Prepared::json(whole)])
            .await;
    let mut conversation = openai_chat::model(&Settings::new(&server.base_url, "m")).unwrap().converse();
    let mut outcomes = Vec::new();
    for _ in 0..5 {
        outcomes.push(ask([user("go")]).of(&mut *conversation).await.is_ok());
    }
    assert_eq!((outcomes.as_slice(), server.connections()), ([true, true, true, false, true].as_slice(), 1));
}

#[tokio::test]
async fn a_server_that_never_answers_times_out() {
    let late = Prepared { before_head: Duration::from_secs(60), ..Prepared::json("{}") };
    let failure = failure(late).await;
    assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderTimeout, true));
    assert!(failure.message.contains("no token within 150ms"), "{}", failure.message);
}

#[tokio::test]
async fn comments_do_not_count_as_the_first_token() {
    let mut comments = Prepared::stream(&[]).ending(Ending::Silence);
    comments.pieces = vec![b": PROCESSING\n\n".to_vec()];
    assert!(failure(comments).await.message.contains("no token"));
}

#[tokio::test]
async fn a_silent_stream_times_out() {
    let failure = failure(Prepared::stream(&[LO]).ending(Ending::Silence)).await;
    assert_eq!(failure.code, ErrorCode::ProviderTimeout);
    assert!(failure.message.contains("no further piece"), "{}", failure.message);
}

#[tokio::test]
async fn a_finished_stream_kept_open_does_not_delay_the_reply() {
    let alive = Prepared::stream(&[LO, STOP]).ending(Ending::Comments);
    // Without a deadline for its rest, the stream would last the ten minutes that a request may take.
    let reply = tokio::time::timeout(Duration::from_secs(120), reply(alive, |settings| settings)).await;
    assert_eq!(reply.expect("the reply is not delayed").0.unwrap().joined_text(), "lo");
}

#[tokio::test]
async fn the_total_deadline_limits_the_request() {
    let timeouts = Timeouts { total: Duration::from_millis(150), ..Timeouts::default() };
    for stream in [true, false] {
        let silent = Prepared::stream(&[LO]).ending(Ending::Silence);
        let (reply, _) = reply(silent, |settings| Settings { timeouts, stream, ..settings }).await;
        let failure = reply.unwrap_err();
        assert_eq!(failure.code, ErrorCode::ProviderTimeout);
        assert!(failure.message.contains("no complete reply within 150ms"), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_finished_reply_survives_a_broken_connection() {
    for ending in [Ending::Silence, Ending::Break] {
        let prepared = Prepared::stream(&[LO, STOP]).ending(ending);
        let (reply, _) = reply(prepared, |settings| Settings { timeouts: quick(), ..settings }).await;
        assert_eq!(reply.unwrap().joined_text(), "lo");
    }
}

#[tokio::test]
async fn the_reply_ends_at_the_end_mark() {
    let prepared = Prepared::stream(&[LO, STOP, "[DONE]"]).ending(Ending::Silence);
    let endless = Duration::from_secs(3_600);
    let timeouts = Timeouts { idle: endless, total: endless, ..Timeouts::default() };
    let reply = reply(prepared, |settings| Settings { timeouts, ..settings });
    let reply = tokio::time::timeout(Duration::from_secs(120), reply).await.expect("it does not wait for more");
    assert!(reply.0.is_ok());
}

#[tokio::test]
async fn a_connection_broken_before_the_finish_cuts_the_reply() {
    for prepared in [Prepared::stream(&[LO]), Prepared::json(r#"{"choices":[{"mess"#)] {
        let failure = failure(prepared.ending(Ending::Break)).await;
        assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderInvalidResponse, true), "{failure}");
    }
}

#[tokio::test]
async fn a_missing_server_is_unavailable() {
    let gone = ModelServer::answering([]).await.base_url.clone();
    tokio::task::yield_now().await;
    let model = openai_chat::model(&Settings { timeouts: quick(), ..Settings::new(gone, "m") }).unwrap();
    let failure = ask([user("go")]).of(&mut *model.converse()).await.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderUnavailable, true), "{failure}");
}

#[tokio::test]
async fn anything_but_a_chat_completion_is_an_invalid_response() {
    let with_type = |content_type: &str, body: &[u8]| Prepared {
        headers: vec![("content-type".into(), content_type.into())],
        ..Prepared::json(body)
    };
    for (what, prepared) in [
        ("HTML", with_type("text/html", b"<html>welcome</html>")),
        ("invalid UTF-8", with_type("application/json", b"{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}")),
        ("invalid UTF-8 in a stream", with_type("text/event-stream", b"data: {\"choices\":\"\xff\"}\n\n")),
        ("nothing", with_type("application/json", b"")),
        ("an empty stream", with_type("text/event-stream", b"")),
        ("only an end mark", with_type("text/event-stream", b"data: [DONE]\n\n")),
        ("another type", with_type("application/json", br#"{"choices": "sk-canary"}"#)),
        ("an array", with_type("application/json", b"[1]")),
        ("two values", with_type("application/json", b"{} {}")),
    ] {
        let failure = failure(prepared).await;
        assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderInvalidResponse, true), "{what}: {failure}");
        assert!(!failure.message.contains("canary") && !failure.message.contains("welcome"), "{what}: {failure}");
        assert_eq!(failure.message.contains("a web page. Check base_url"), what == "HTML", "{failure}");
    }
}

#[tokio::test]
async fn a_body_or_event_beyond_the_limit_is_rejected() {
    let mebibyte = vec![b' '; 1 << 20];
    let body = Prepared { pieces: vec![mebibyte.clone(); 33], ..Prepared::json("") };
    // This much data takes time on a busy machine; the size limit must reject it, not the deadline.
    let failure = async |prepared| reply(prepared, |settings| settings).await.0.unwrap_err();
    let failure_of_body = failure(body).await;
    assert!(failure_of_body.message.contains("larger than 32 MiB"), "{failure_of_body}");
    let event = Prepared { pieces: [vec![b"data: ".to_vec()], vec![mebibyte; 17]].concat(), ..Prepared::stream(&[]) };
    let failure_of_event = failure(event).await;
    assert!(failure_of_event.message.contains("larger than 16 MiB"), "{failure_of_event}");
    for failure in [failure_of_body, failure_of_event] {
        assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderInvalidResponse, false));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let headers = vec![("location".into(), "http://elsewhere.example/".into())];
    let failure = failure(Prepared { headers, ..Prepared::json("").status(307) }).await;
    assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderRejected, false));
    assert!(failure.message.contains("check base_url"), "{failure}");
}

#[tokio::test]
async fn no_failure_repeats_a_key_a_header_or_an_echoed_body() {
    const KEY: &str = "sk-canary-4711-0815-secret";
    let echoes = [
        json!({"error": {"message": format!("you sent Bearer {KEY}"), "type": "x", "code": KEY}}).to_string(),
        json!({"error": {"message": format!("Incorrect API key provided: {}***", &KEY[..14])}}).to_string(),
        json!({"error": KEY}).to_string(),
        json!({"message": format!("header x-team was header-canary-99 and {KEY}")}).to_string(),
        json!({"detail": [{"loc": ["body", "model"], "msg": "bad", "input": {"key": KEY}}]}).to_string(),
        json!({"anything": KEY}).to_string(),
        format!("<html>{KEY}</html>"),
        format!("{{\"choices\": \"{KEY}\"}}"),
        json!({"choices": [{"message": {"content": [KEY, 1]}}]}).to_string(),
    ];
    for echo in &echoes {
        for status in [200, 400, 401, 403, 404, 422, 429, 500, 503] {
            for content_type in ["application/json", "text/event-stream", "text/html"] {
                let body = if content_type == "text/event-stream" { format!("data: {echo}\n\n") } else { echo.clone() };
                let headers = vec![("content-type".into(), content_type.into())];
                let prepared = Prepared { headers, ..Prepared::json(body).status(status) };
                let (reply, _) = reply(prepared, |settings| Settings {
                    api_key: Some(Key::from(KEY)),
                    headers: [("x-team".to_owned(), SecretString::from("header-canary-99"))].into(),
                    ..settings
                })
                .await;
                let failure = format!("{:?}", reply.unwrap_err());
                assert!(!failure.contains("canary"), "{status} {content_type} {echo}: {failure}");
            }
        }
    }
}

#[tokio::test]
async fn a_failure_has_the_servers_message_and_a_fix() {
    let error = json!({"error": {"message": "The model `x` does not exist", "type": "invalid_request_error", "code": "model_not_found"}});
    let failure = failure(Prepared::json(error.to_string()).status(404)).await;
    assert_eq!(failure.code, ErrorCode::ProviderRejected);
    let said = failure.message.strip_prefix("127.0.0.1:").expect("the message names the server");
    let said = said.trim_start_matches(|c: char| c.is_ascii_digit());
    let expected = " answered with an error (HTTP 404, model_not_found, invalid_request_error): \
                    The model `x` does not exist. Check base_url and the name of the model";
    assert_eq!(said, expected);
}

#[tokio::test]
async fn errors_are_classified_by_code_and_status() {
    for (status, error, code) in [
        (400, json!({"code": "content_filter"}), ErrorCode::ContentFilter),
        (400, json!({"code": "context_length_exceeded", "type": "invalid_request_error"}), ErrorCode::ContextWindow),
        (400, json!({"type": "exceed_context_size_error"}), ErrorCode::ContextWindow),
        (402, json!({}), ErrorCode::ProviderBilling),
        (403, json!({}), ErrorCode::ProviderAuth),
        (409, json!({}), ErrorCode::ProviderUnavailable),
        (429, json!({"type": "invalid_request_error"}), ErrorCode::ProviderRateLimit),
        (504, json!({}), ErrorCode::ProviderTimeout),
        (200, json!({"code": 429}), ErrorCode::ProviderRateLimit),
        (200, json!({"code": "401"}), ErrorCode::ProviderAuth),
        (200, json!({"type": "invalid_request_error"}), ErrorCode::ProviderRejected),
        (200, json!("who knows"), ErrorCode::ProviderUnavailable),
    ] {
        let failure = failure(Prepared::json(json!({"error": error}).to_string()).status(status)).await;
        assert_eq!((failure.code, failure.retryable), (code, code.is_retryable()), "{status} {error}");
    }
}

#[tokio::test]
async fn azure_filter_chunks_after_the_finish_are_ignored() {
    let filtered = r#"{"id":"","object":"","model":"","choices":[{"index":0,"finish_reason":null,
        "content_filter_offsets":{"check_offset":9},"content_filter_results":{"hate":{"filtered":false}}}]}"#;
    let filtered = filtered.replace('\n', "");
    let first = r#"{"id":"","model":"","choices":[],"prompt_filter_results":[]}"#;
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    let events = [first, &filtered, LO, &filtered, STOP, &filtered, usage, "[DONE]"];
    let reply = reply(Prepared::stream(&events), |settings| settings).await.0.unwrap();
    assert_eq!((reply.joined_text().as_str(), reply.stop, reply.usage.input_tokens), ("lo", Stop::End, Some(3)));
}

#[tokio::test]
async fn an_error_event_of_older_vllm_keeps_its_message() {
    let error = r#"{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}"#;
    let failure = failure(Prepared::stream(&[LO, error, "[DONE]"])).await;
    assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderRejected, false));
    assert!(failure.message.ends_with("(code 400, BadRequestError): too long"), "{failure}");
    let overflow = error.replace("too long", "This model's maximum context length is 4 tokens.");
    assert_eq!(self::failure(Prepared::stream(&[LO, &overflow])).await.code, ErrorCode::ContextWindow);
}

#[tokio::test]
async fn reasoning_in_details_is_shown() {
    let think = |text: &str| {
        let detail = json!({"type": "reasoning.text", "text": text, "index": 0});
        json!({"choices": [{"delta": {"reasoning_details": [detail]}}]}).to_string()
    };
    let events = [think("Look"), think(" up."), LO.to_owned(), STOP.to_owned(), "[DONE]".to_owned()];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let reply = reply(Prepared::stream(&events), |settings| settings).await.0.unwrap();
    assert_eq!(reply.content, [Part::Reasoning { text: "Look up.".into() }, Part::text("lo")]);
}

#[tokio::test]
async fn an_interrupted_generation_is_a_retryable_failure() {
    for reason in ["error", "insufficient_system_resource", "abort"] {
        let choice =
            |said: &str| json!({"choices": [{said: {"content": "Half an"}, "finish_reason": reason}]}).to_string();
        for prepared in [Prepared::json(choice("message")), Prepared::stream(&[LO, &choice("delta"), "[DONE]"])] {
            let failure = failure(prepared).await;
            assert_eq!(
                (failure.code, failure.retryable),
                (ErrorCode::ProviderUnavailable, true),
                "{reason}: {failure}"
            );
            assert!(failure.message.contains(reason), "{failure}");
        }
    }
}
