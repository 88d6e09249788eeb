//! Changing keys, and proxies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use secrecy::SecretString;
use toolgate::core::chat::Reply;
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::models::{Key, KeyCommand, KeySource, Proxy, Settings, SettingsError, openai_chat};
use toolgate::ports::Model;

use super::asking::{ask, user};
use super::model_server::{ModelServer, Prepared};
use super::openai_requests::at_host;

const HI: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

/// A key source that returns `key-canary-1`, `key-canary-2`, …
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl KeySource for Counting {
    async fn key(&self) -> Result<SecretString, String> {
        Ok(format!("key-canary-{}", self.0.fetch_add(1, Ordering::SeqCst) + 1).into())
    }
}

fn refused(echo: &str) -> Prepared {
    Prepared::json(format!(r#"{{"error":{{"message":"bad key {echo}"}}}}"#)).status(401)
}

async fn asked_under(
    key: Key,
    answers: impl IntoIterator<Item = Prepared>,
    times: usize,
) -> (Vec<Result<Reply, Failure>>, Vec<String>) {
    let server = ModelServer::answering(answers).await;
    let model = openai_chat::model(&Settings { api_key: Some(key), ..Settings::new(&server.base_url, "m") }).unwrap();
    let mut replies = Vec::new();
    for _ in 0..times {
        replies.push(ask([user("go")]).of(&mut *model.converse()).await);
    }
    let asked = server.asked();
    let shown = asked.iter().map(|asked| asked.headers["authorization"].to_str().unwrap().to_owned());
    (replies, shown.collect())
}

fn counting() -> Key {
    Key::From(Arc::new(Counting::default()))
}

#[tokio::test]
async fn a_key_is_fetched_once_and_used_for_every_request() {
    let (replies, shown) = asked_under(counting(), vec![Prepared::json(HI); 3], 3).await;
    assert!(replies.iter().all(Result::is_ok));
    assert_eq!(shown, ["Bearer key-canary-1"; 3]);
}

#[tokio::test]
async fn a_rejected_key_is_replaced_once_within_the_attempt() {
    let answers = [Prepared::json(HI), refused("key-canary-1"), Prepared::json(HI), Prepared::json(HI)];
    let (replies, shown) = asked_under(counting(), answers, 3).await;
    assert!(replies.iter().all(Result::is_ok));
    let expected = ["Bearer key-canary-1", "Bearer key-canary-1", "Bearer key-canary-2", "Bearer key-canary-2"];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_second_rejection_is_final_and_shows_no_key() {
    let (replies, shown) = asked_under(counting(), [refused("key-canary-1"), refused("key-canary-2")], 1).await;
    let failure = replies[0].as_ref().unwrap_err();
    assert_eq!((failure.code, failure.retryable, shown.len()), (ErrorCode::ProviderAuth, false, 2));
    assert!(!failure.message.contains("canary"), "{failure}");
}

#[tokio::test]
async fn an_unchanged_key_is_not_tried_again() {
    let (replies, shown) = asked_under("key-canary-1".into(), [refused("x"), Prepared::json(HI)], 1).await;
    assert_eq!((replies[0].as_ref().unwrap_err().code, shown.len()), (ErrorCode::ProviderAuth, 1));
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_prints_a_key_is_a_source_of_keys() {
    let script = |text: &str| KeyCommand { command: "sh".into(), args: vec!["-c".into(), text.into()] };
    let (_, shown) = asked_under(Key::Command(script("echo '  key-from-a-program '")), [Prepared::json(HI)], 1).await;
    assert_eq!(shown, ["Bearer key-from-a-program"]);
    let missing = KeyCommand { command: "there-is-no-such-program".into(), args: vec![] };
    for (command, complaint) in [
        (script("echo secret-canary; exit 3"), "exit status: 3"),
        (script("echo secret-canary >&2; exit 3"), "exit status: 3"),
        (script("true"), "printed nothing"),
        (script("printf '\\377'"), "printed invalid UTF-8"),
        (missing, "cannot be run"),
    ] {
        let (replies, shown) = asked_under(Key::Command(command), [Prepared::json(HI)], 1).await;
        let why = replies[0].as_ref().unwrap_err().to_string();
        assert!(why.contains(complaint) && !why.contains("canary"), "{why}");
        assert_eq!(shown.len(), 0, "{why}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn without_a_key_no_request_is_sent() {
    let source = KeyCommand { command: "false".into(), args: vec![] };
    let (replies, shown) = asked_under(Key::Command(source), [Prepared::json(HI)], 1).await;
    let failure = replies[0].as_ref().unwrap_err();
    assert_eq!((failure.code, shown.len()), (ErrorCode::ProviderAuth, 0));
    assert!(failure.message.contains("no key to send: `false` failed"), "{failure}");
}

#[tokio::test]
async fn requests_go_through_the_proxy() {
    let proxy = ModelServer::answering([Prepared::json(HI)]).await;
    let url = proxy.base_url.trim_end_matches("/v1").to_owned();
    let settings = Settings { proxy: Proxy::Url(url.into()), ..Settings::new("http://model.example/v1", "m") };
    let model = openai_chat::model(&settings).unwrap();
    ask([user("go")]).of(&mut *model.converse()).await.unwrap();
    assert_eq!(proxy.asked()[0].headers["host"], "model.example");
}

#[test]
fn an_invalid_proxy_is_rejected_without_being_shown() {
    let settings = Settings { proxy: Proxy::Url("pass-canary@@".into()), ..Settings::new("http://h/v1", "m") };
    let error = openai_chat::model(&settings).unwrap_err();
    assert_eq!(error, SettingsError::Proxy);
    assert!(!error.to_string().contains("canary"));
}

#[tokio::test]
async fn azure_gets_keys_and_tokens_in_different_headers() {
    let shown = async |key: Key| {
        let server = ModelServer::answering([Prepared::json(HI)]).await;
        let settings = Settings { api_key: Some(key), ..at_host("x.openai.azure.com", &server, "m") };
        ask([user("go")]).of(&mut *openai_chat::model(&settings).unwrap().converse()).await.unwrap();
        let headers = server.asked().remove(0).headers;
        ["api-key", "authorization"].map(|name| headers.get(name).map(|value| value.to_str().unwrap().to_owned()))
    };
    assert_eq!(shown("key-1".into()).await, [Some("key-1".into()), None]);
    assert_eq!(shown(counting()).await, [None, Some("Bearer key-canary-1".into())]);
}
