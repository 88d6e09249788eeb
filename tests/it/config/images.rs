//! Image models, and agents with settings that such a model cannot use.

use toolgate::config::{Api, ModelSettings};

use super::load;

const ARTIST: &str = "models: { artist: { openai_images: { model: gpt-image-2, extra: { size: 1024x1024 } } } }\n";

const TWO: &str = "models: { artist: { openai_images: { model: i } }, talker: { openai_chat: { model: t } } }\n";

#[test]
fn an_image_model_has_a_server_a_name_and_image_parameters() {
    let settings = load(&format!("{ARTIST}agents: {{ painter: {{ servers: [] }} }}\n")).unwrap();
    let ModelSettings::Http(model) = &settings.models[&"artist".into()] else { panic!("a model on a server") };
    assert_eq!((model.api, model.settings.base_url.as_str()), (Api::OpenAiImages, "https://api.openai.com/v1"));
    assert_eq!(model.settings.extra["size"], "1024x1024");
}

#[test]
fn settings_an_image_model_cannot_use_are_rejected_in_place() {
    let text = format!(
        "{TWO}servers: {{ shop: {{ stdio: {{ command: shop }} }} }}
agents:
  painter:
    model: artist
    instructions: Always blue.
    servers: [shop]
    tools: {{ deny: ['*'] }}
    external_tools: [{{ name: hang }}]
    output_schema: {{ type: object }}
    fallback: [talker]
"
    );
    let error = load(&text).map(drop).expect_err("it is refused");
    let told: Vec<_> = error.faults().map(|fault| (fault.line_and_column().unwrap().0, fault.message())).collect();
    let message =
        |key: &str| format!("agent `painter` has an image model, which takes only a prompt and cannot use `{key}`");
    let keys = ["instructions", "servers", "tools", "external_tools", "output_schema", "fallback"];
    let expected: Vec<_> = (6..).zip(keys.map(message)).collect();
    assert_eq!(told, expected.iter().map(|(line, message)| (*line, message.as_str())).collect::<Vec<_>>());
    assert!(error.faults().all(|fault| fault.remedy() == Some("remove it, or give the agent another model")));
}

#[test]
fn an_image_model_cannot_be_a_fallback() {
    let text = format!("{TWO}agents: {{ writer: {{ model: talker, fallback: [artist] }} }}\n");
    let error = load(&text).map(drop).expect_err("it is refused");
    let told: Vec<&str> = error.faults().map(|fault| fault.message()).collect();
    assert_eq!(told, ["model `artist` generates images and cannot be a fallback"]);
}

#[test]
fn the_implicit_agent_of_an_image_model_has_no_servers() {
    let settings = load(&format!("{ARTIST}servers: {{ shop: {{ stdio: {{ command: shop }} }} }}\n")).unwrap();
    assert_eq!(settings.agents[&"assistant".into()].servers, []);
}
