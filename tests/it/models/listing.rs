//! The list of models: what it shows about server and key, without a call of a model.

use std::time::Duration;

use toolgate::core::error::ErrorCode;
use toolgate::models::{Key, ListApi, ModelList, Settings, list_models};

use super::model_server::{ModelServer, Prepared};

const WITHIN: Duration = Duration::from_secs(30);

fn settings(server: &ModelServer) -> Settings {
    Settings { api_key: Some(Key::Fixed("sk-very-secret".into())), ..Settings::new(&server.base_url, "m") }
}

#[tokio::test]
async fn each_api_lists_its_models_with_the_key() {
    for (api, body, path, header) in [
        (ListApi::OpenAi, r#"{"object": "list", "data": [{"id": "m"}]}"#, "/v1/models", "authorization"),
        (ListApi::Anthropic, r#"{"data": [{"type": "model", "id": "m"}]}"#, "/v1/models", "x-api-key"),
        (ListApi::Gemini, r#"{"models": [{"name": "m", "version": "1"}]}"#, "/v1/models", "x-goog-api-key"),
    ] {
        let server = ModelServer::answering([Prepared::json(body)]).await;
        let listed = list_models(&settings(&server), api, WITHIN).await;
        assert_eq!(listed, Ok(ModelList::Models(vec!["m".to_owned()])));
        let asked = server.asked();
        assert_eq!(asked[0].path, path);
        assert!(asked[0].headers[header].to_str().unwrap().ends_with("sk-very-secret"), "{header}");
    }
}

#[tokio::test]
async fn a_server_without_a_list_says_nothing_about_the_key() {
    let answers = [Prepared::json("{}").status(404), Prepared::json("<html>"), Prepared::json("{}").status(429)];
    let server = ModelServer::answering(answers).await;
    for status in [404, 200, 429] {
        let listed = list_models(&settings(&server), ListApi::OpenAi, WITHIN).await;
        assert_eq!(listed, Ok(ModelList::NoList { status }));
    }
}

#[tokio::test]
async fn a_rejected_key_and_a_missing_one_are_told_apart_and_not_shown() {
    let refused = || Prepared::json(r#"{"error": "bad key sk-very-secret"}"#).status(401);
    let server = ModelServer::answering([refused(), refused()]).await;
    let with = list_models(&settings(&server), ListApi::OpenAi, WITHIN).await.unwrap_err();
    let without = list_models(&Settings::new(&server.base_url, "m"), ListApi::OpenAi, WITHIN).await.unwrap_err();
    assert_eq!((with.code, without.code), (ErrorCode::ProviderAuth, ErrorCode::ProviderAuth));
    assert!(with.message.contains("rejects the key") && without.message.contains("requires a key"), "{}", with.message);
    assert!(!with.message.contains("sk-very-secret"), "{}", with.message);
}

#[tokio::test]
async fn a_server_that_is_not_there_has_its_remedy() {
    let failure = list_models(&Settings::new("http://127.0.0.1:9/v1", "m"), ListApi::OpenAi, WITHIN).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ProviderUnavailable);
    assert!(failure.message.contains("cannot be reached") && failure.message.contains("Start the server"), "{failure}");
}
