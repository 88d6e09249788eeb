//! Defaults of an empty or small configuration.

use std::path::{Path, PathBuf};

use secrecy::ExposeSecret as _;
use toolgate::config::{self, Api, Durability, HttpModelSettings, ModelSettings, Settings, StoreSettings};
use toolgate::models::Key;

use super::{folder, load, no_env};

fn environment_model(settings: &Settings) -> &HttpModelSettings {
    let agent = settings.agents.values().next().expect("an agent");
    match &settings.models[&agent.model] {
        ModelSettings::Http(model) => model,
        other => panic!("{other:?}"),
    }
}

fn key(model: &HttpModelSettings) -> Option<&str> {
    match &model.settings.api_key {
        Some(Key::Fixed(key)) => Some(key.expose_secret()),
        Some(Key::Command(_) | Key::From(_)) | None => None,
    }
}

fn with_env(vars: &'static [(&'static str, &'static str)]) -> Settings {
    let env = move |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let folder = folder(&[("toolgate.yaml", "")]);
    config::load(Some(&folder.path().join("toolgate.yaml")), &env).expect("good")
}

#[test]
fn an_empty_file_is_an_assistant_on_the_environments_model() {
    let folder = folder(&[("toolgate.yaml", "# nothing\n")]);
    let settings = config::load(Some(&folder.path().join("toolgate.yaml")), &no_env).expect("good");
    let database = folder.path().join(".toolgate/toolgate.db");
    assert_eq!(settings.store, StoreSettings::Sqlite { path: database, durability: Durability::PowerCut });
    let agent = &settings.agents[&"assistant".into()];
    assert_eq!((agent.model.as_str(), agent.policy.name.as_str()), ("environment", "default"));
    let ModelSettings::Missing { remedy } = &settings.models[&agent.model] else { panic!("a model without a key") };
    assert!(remedy.contains("OPENAI_API_KEY") && remedy.contains("TOOLGATE_MODEL_URL"));
}

#[test]
fn only_the_implicit_assistant_may_use_every_server() {
    let servers = "servers:\n  b: { stdio: { command: b } }\n  a: { stdio: { command: a } }\n";
    let implicit = load(servers).expect("good");
    assert_eq!(implicit.agents[&"assistant".into()].servers, ["a".into(), "b".into()]);
    let written = load(&format!("{servers}agents: {{ x: {{}} }}")).expect("good");
    assert_eq!(written.agents[&"x".into()].servers, []);
}

#[test]
fn an_openai_key_is_enough() {
    let settings = with_env(&[("OPENAI_API_KEY", "k")]);
    let chat = environment_model(&settings);
    assert_eq!(chat.settings.base_url, "https://api.openai.com/v1");
    assert_eq!(key(chat), Some("k"));
}

#[test]
fn a_key_of_anthropic_or_gemini_is_enough() {
    let settings = with_env(&[("ANTHROPIC_API_KEY", "a"), ("GEMINI_API_KEY", "g")]);
    let model = environment_model(&settings);
    assert_eq!(
        (model.api, model.settings.base_url.as_str(), key(model)),
        (Api::Anthropic, "https://api.anthropic.com", Some("a"))
    );
    let settings =
        with_env(&[("GEMINI_API_KEY", "g"), ("GEMINI_MODEL", "gemini-x"), ("GEMINI_BASE_URL", "http://h/v")]);
    let model = environment_model(&settings);
    assert_eq!(
        (model.api, model.settings.base_url.as_str(), model.settings.model.as_str()),
        (Api::Gemini, "http://h/v", "gemini-x")
    );
}

#[test]
fn toolgates_own_variables_come_before_openais() {
    let settings = with_env(&[
        ("OPENAI_API_KEY", "k"),
        ("TOOLGATE_MODEL_URL", "http://localhost:8080/v1/"),
        ("TOOLGATE_MODEL", "qwen3"),
    ]);
    let chat = environment_model(&settings);
    assert_eq!((chat.settings.base_url.as_str(), chat.settings.model.as_str()), ("http://localhost:8080/v1", "qwen3"));
    assert!(chat.settings.api_key.is_none(), "a key goes to the server it belongs to, and to no other");
}

#[test]
fn opentelemetry_variables_apply_without_settings() {
    let settings = with_env(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_SERVICE_NAME", "shop")]);
    assert_eq!(settings.telemetry.otlp_endpoint, None, "export reads it, for a variable of one signal comes before it");
    assert_eq!(settings.telemetry.service_name, "shop");
}

#[test]
fn toolgate_config_names_the_file_unless_the_command_line_does() {
    let folder = folder(&[("a.yaml", "log: a"), ("b.yaml", "log: b")]);
    let named = folder.path().join("b.yaml").display().to_string();
    let env = |name: &str| (name == "TOOLGATE_CONFIG").then(|| named.clone());
    let a: PathBuf = folder.path().join("a.yaml");
    assert_eq!(config::load(None, &env).expect("good").log.as_deref(), Some("b"));
    assert_eq!(config::load(Some(&a), &env).expect("good").log.as_deref(), Some("a"));
}

#[test]
fn without_any_file_the_defaults_apply() {
    // The tests run in the package's folder, which contains no configuration.
    let settings = config::load(None, &no_env).expect("good");
    assert_eq!(settings.file, None);
    let path = Path::new(".toolgate/toolgate.db").to_owned();
    assert_eq!(settings.store, StoreSettings::Sqlite { path, durability: Durability::PowerCut });
}
