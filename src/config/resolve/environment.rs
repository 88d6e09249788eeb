//! The model that the environment names, so that a first run needs no configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use super::models::{CONNECT_SECONDS, IDLE_SECONDS, OPENAI_URL, TOTAL_SECONDS};
use crate::config::expand::Env;
use crate::config::settings::OpenAiChatSettings;

/// What is asked for when only a key is given.
const OPENAI_MODEL: &str = "gpt-5-mini";

/// What to do when the environment names no model.
pub(super) const REMEDY: &str = "set TOOLGATE_MODEL_URL (with TOOLGATE_MODEL and TOOLGATE_MODEL_KEY) or OPENAI_API_KEY, \
     or configure a model in toolgate.yaml (`toolgate init` writes one)";

/// The model that `TOOLGATE_MODEL_URL`, or else `OPENAI_API_KEY`, stands for. Empty variables count as unset.
pub(super) fn model(env: Env<'_>) -> Option<OpenAiChatSettings> {
    let var = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(url) = var("TOOLGATE_MODEL_URL") {
        let model = var("TOOLGATE_MODEL").unwrap_or_else(|| "default".into());
        return Some(settings(&url, var("TOOLGATE_MODEL_KEY"), model));
    }
    let key = var("OPENAI_API_KEY")?;
    let url = var("OPENAI_BASE_URL").unwrap_or_else(|| OPENAI_URL.into());
    Some(settings(&url, Some(key), var("OPENAI_MODEL").unwrap_or_else(|| OPENAI_MODEL.into())))
}

fn settings(url: &str, key: Option<String>, model: String) -> OpenAiChatSettings {
    OpenAiChatSettings {
        base_url: url.trim_end_matches('/').to_owned(),
        api_key: key.map(Into::into),
        model,
        stream: true,
        temperature: None,
        max_tokens: None,
        connect_timeout: Duration::from_secs(CONNECT_SECONDS),
        idle_timeout: Duration::from_secs(IDLE_SECONDS),
        total_timeout: Duration::from_secs(TOTAL_SECONDS),
        headers: BTreeMap::new(),
        extra: serde_json::Map::new(),
    }
}
