//! The model from the environment, so that a first run needs no configuration.

use super::model_defaults::{default_url, plain};
use crate::expand::Env;
use crate::settings::{Api, HttpModelSettings, KeySettings};

/// The default models when only a key is set: small models that call tools well.
const OPENAI_MODEL: &str = "gpt-5-mini";
const ANTHROPIC_MODEL: &str = "claude-haiku-4-5";
const GEMINI_MODEL: &str = "gemini-flash-latest";

/// How to fix an environment that names no model.
pub(super) const REMEDY: &str = "set TOOLGATE_MODEL_URL (with TOOLGATE_MODEL and TOOLGATE_MODEL_KEY), OPENAI_API_KEY, \
     ANTHROPIC_API_KEY or GEMINI_API_KEY, or configure a model in toolgate.yaml (`toolgate init` writes one)";

/// The model from `TOOLGATE_MODEL_URL`, or else from a provider's key. Empty variables count as unset.
pub(super) fn model(env: Env<'_>) -> Option<HttpModelSettings> {
    let var = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(url) = var("TOOLGATE_MODEL_URL") {
        let model = var("TOOLGATE_MODEL").unwrap_or_else(|| "default".into());
        let key = var("TOOLGATE_MODEL_KEY").map(|key| KeySettings::Fixed(key.into()));
        return Some(plain(Api::OpenAiChat, &url, key, model));
    }
    let providers = [
        (Api::OpenAiChat, "OPENAI", OPENAI_MODEL),
        (Api::Anthropic, "ANTHROPIC", ANTHROPIC_MODEL),
        (Api::Gemini, "GEMINI", GEMINI_MODEL),
    ];
    providers.into_iter().find_map(|(api, name, model)| {
        let key = KeySettings::Fixed(var(&format!("{name}_API_KEY"))?.into());
        let url = var(&format!("{name}_BASE_URL")).unwrap_or_else(|| default_url(api).into());
        Some(plain(api, &url, Some(key), var(&format!("{name}_MODEL")).unwrap_or_else(|| model.into())))
    })
}
