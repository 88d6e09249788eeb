//! Checks of model settings, and the part of them that spans show.

use serde_json::{Map, Value, json};
use toolgate_settings::model::{Settings, ToolChoice};

/// Invalid settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The base address is invalid.
    #[error("base_url is not an http or https address: {0}")]
    BaseUrl(String),
    /// The address is not allowed.
    #[error("base_url: {0}")]
    Egress(String),
    /// A header that HTTP does not allow. The message does not show its value.
    #[error("the header {0:?} has a name or a value that HTTP does not allow")]
    Header(String),
    /// The key cannot be a header value. The message does not show it.
    #[error("the API key holds characters that an HTTP header cannot carry; is there a line end in it?")]
    ApiKey,
    /// The proxy address is invalid. The message does not show it.
    #[error("the proxy is not a usable address")]
    Proxy,
    /// A body field that toolgate sets.
    #[error("extra.{0} is set by toolgate itself; remove it")]
    ReservedField(String),
    /// A setting that this provider does not support.
    #[error("{wire} has no {setting}; remove it")]
    Unsupported {
        /// The wire format.
        wire: &'static str,
        setting: &'static str,
    },
    /// A value that this provider does not support.
    #[error("{0}")]
    Unusable(String),
    /// The HTTP client cannot be created.
    #[error("the HTTP client cannot be built: {0}")]
    Client(String),
}

/// Rejects an extra field that toolgate sets: an operator's own value would break the loop.
pub(crate) fn check_reserved(settings: &Settings, fields: &[&str]) -> Result<(), SettingsError> {
    match fields.iter().find(|field| settings.extra.contains_key(**field)) {
        Some(field) => Err(SettingsError::ReservedField((*field).into())),
        None => Ok(()),
    }
}

/// The settings that spans and listings show: only sampling, no address, header or extra field.
pub(super) fn sampling_settings(settings: &Settings) -> Value {
    let mut shown = Map::new();
    let mut show = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown.insert(name.into(), value);
        }
    };
    show("stream", Some(json!(settings.stream)));
    show("temperature", settings.temperature.map(Value::from));
    show("max_tokens", settings.max_tokens.map(Value::from));
    show("top_p", settings.top_p.map(Value::from));
    show("seed", settings.seed.map(Value::from));
    show("reasoning_effort", settings.reasoning.effort.clone().map(Value::from));
    show("reasoning_budget_tokens", settings.reasoning.budget_tokens.map(Value::from));
    show("parallel_tool_calls", settings.parallel_tool_calls.map(Value::from));
    match &settings.tool_choice {
        ToolChoice::Auto => {}
        ToolChoice::Required => show("tool_choice", Some(json!("required"))),
        ToolChoice::Tool(name) => show("tool_choice", Some(json!(name))),
    }
    Value::Object(shown)
}
