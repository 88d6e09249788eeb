//! Model options of a run: each adapter sends them in place of its settings, or refuses them.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::chat::Price;
use toolgate::core::run::ModelOptions;
use toolgate::core::tool::ToolChoice;
use toolgate::models::prices::Priced;
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::models::{
    HttpModel, Settings, SettingsError, anthropic, gemini, openai_chat, openai_images, openai_responses,
};
use toolgate::ports::Model;

use super::asking::{ask, user};
use super::model_server::{ModelServer, Prepared};

type Open = fn(&Settings) -> Result<HttpModel, SettingsError>;

fn options() -> ModelOptions {
    ModelOptions {
        tool_choice: Some(ToolChoice::Required),
        parallel_tool_calls: None,
        temperature: Some(0.5),
        max_output_tokens: Some(100),
    }
}

/// The body of a request with these options, of a model with other settings.
async fn sent(open: Open, options: &ModelOptions) -> Value {
    let server = ModelServer::answering([Prepared::json("{}")]).await;
    let settings = Settings {
        temperature: Some(0.1),
        max_tokens: Some(900),
        stream: false,
        tool_choice: ToolChoice::Tool("ext_other".into()),
        ..Settings::new(&server.base_url, "m")
    };
    let model = open(&settings).unwrap().with_options(options).unwrap();
    // The answer is no reply of this API, and the request is complete.
    let _ = ask([user("a")]).with_tools(&["look"]).of(&mut *model.converse()).await;
    let body = server.asked().remove(0).json();
    assert_eq!(model.identity().settings["temperature"], json!(0.5), "spans show what is sent");
    body
}

#[tokio::test]
async fn every_api_sends_the_options_of_a_run_in_place_of_its_settings() {
    let serial = ModelOptions { parallel_tool_calls: Some(false), ..options() };

    let chat = sent(openai_chat::model, &serial).await;
    assert_eq!((&chat["temperature"], &chat["max_tokens"]), (&json!(0.5), &json!(100)));
    assert_eq!((&chat["tool_choice"], &chat["parallel_tool_calls"]), (&json!("required"), &json!(false)));
    let responses = sent(openai_responses::model, &serial).await;
    assert_eq!((&responses["temperature"], &responses["max_output_tokens"]), (&json!(0.5), &json!(100)));
    assert_eq!((&responses["tool_choice"], &responses["parallel_tool_calls"]), (&json!("required"), &json!(false)));
    let messages = sent(anthropic::model, &serial).await;
    assert_eq!((&messages["temperature"], &messages["max_tokens"]), (&json!(0.5), &json!(100)));
    assert_eq!(messages["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
    let generate = sent(gemini::model, &options()).await;
    assert_eq!(generate["generationConfig"], json!({"temperature": 0.5, "maxOutputTokens": 100}));
    assert_eq!(generate["toolConfig"], json!({"functionCallingConfig": {"mode": "ANY"}}));
}

#[test]
fn an_option_that_has_no_effect_or_exceeds_the_settings_is_refused() {
    let settings = || Settings::new("http://h", "m");
    let refused = |model: &dyn Model, options: &ModelOptions| model.with_options(options).err().unwrap();
    let none = ModelOptions::default;
    let warm = ModelOptions { temperature: Some(0.5), ..none() };
    let long = ModelOptions { max_output_tokens: Some(901), ..none() };

    let serial = ModelOptions { parallel_tool_calls: Some(false), ..none() };
    assert_eq!(refused(&gemini::model(&settings()).unwrap(), &serial), "Gemini has no parallel_tool_calls; remove it");
    let images = openai_images::model(&settings()).unwrap();
    assert_eq!(refused(&images, &warm), "the Images API has no temperature; remove it");
    let small = openai_chat::model(&Settings { max_tokens: Some(900), ..settings() }).unwrap();
    assert_eq!(refused(&small, &long), "the model is configured for at most 900 output tokens, not 901");
    for (extra, options) in [
        (json!({"temperature": 0}), &warm),
        (json!({"generationConfig": {"temperature": 0}}), &warm),
        (json!({"max_completion_tokens": 5}), &long),
    ] {
        let extra = extra.as_object().unwrap().clone();
        let open: Open = if extra.contains_key("generationConfig") { gemini::model } else { openai_chat::model };
        let why = refused(&open(&Settings { extra, ..settings() }).unwrap(), options);
        assert!(why.contains("in `extra`"), "{why}");
    }
    let scripted = ScriptedModel::new("scripted", Script::default());
    assert_eq!(refused(&scripted, &warm), "the model `scripted` takes no options of a run");
}

#[test]
fn a_model_with_options_keeps_its_price() {
    let model = Arc::new(openai_chat::model(&Settings::new("http://h", "m")).unwrap());
    let priced = Priced::new(model, Price::default());
    assert!(priced.with_options(&options()).unwrap().price().is_some());
}
