//! Settings under this API's names.

use serde_json::{Map, Value, json};

use crate::http::{PromptCache, Settings, SettingsError, check_reserved};

/// Fields that toolgate sets, in both spellings that the API reads.
const RESERVED: [&str; 9] = [
    "model",
    "contents",
    "systemInstruction",
    "system_instruction",
    "tools",
    "toolConfig",
    "tool_config",
    "continuationToken",
    "generation_config",
];

const GENERATION_CONFIG: &str = "generationConfig";

/// Rejects settings that this API does not support.
pub(super) fn check(settings: &Settings) -> Result<(), SettingsError> {
    check_reserved(settings, &RESERVED)?;
    let unsupported = |setting| Err(SettingsError::Unsupported { wire: "Gemini", setting });
    let unusable = |why: &str| Err(SettingsError::Unusable(why.into()));
    if settings.parallel_tool_calls.is_some() {
        return unsupported("parallel_tool_calls");
    }
    if matches!(settings.prompt_cache, PromptCache::FiveMinutes | PromptCache::OneHour) {
        return unsupported("prompt_cache");
    }
    if settings.reasoning.send_back.is_some() {
        return unsupported("reasoning.send_back");
    }
    if settings.reasoning.effort.is_some() && settings.reasoning.budget_tokens.is_some() {
        return unusable("Gemini takes reasoning.effort (from Gemini 3 on) or reasoning.budget_tokens, not both");
    }
    if settings.seed.is_some_and(|seed| i32::try_from(seed).is_err()) {
        return unusable("Gemini takes a seed of 32 bits; choose a smaller one");
    }
    match settings.extra.get(GENERATION_CONFIG) {
        Some(Value::Object(config)) if config.contains_key("candidateCount") => {
            Err(SettingsError::ReservedField("generationConfig.candidateCount".into()))
        }
        Some(Value::Object(_)) | None => Ok(()),
        Some(_) => unusable("extra.generationConfig is not an object"),
    }
}

/// The extra fields of the body, next to the ones that toolgate sets.
pub(super) fn beside(settings: &Settings) -> Map<String, Value> {
    let mut extra = settings.extra.clone();
    extra.remove(GENERATION_CONFIG);
    extra
}

/// `generationConfig` without the output schema. Fields of `extra` are merged into it at any depth, and win.
pub(super) fn generation(settings: &Settings) -> Map<String, Value> {
    let mut thinking = Map::new();
    let mut config = Map::new();
    let set = |fields: &mut Map<String, Value>, name: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    };
    // The API spells the levels in capitals.
    let level = settings.reasoning.effort.as_ref().map(|effort| json!(effort.to_ascii_uppercase()));
    set(&mut thinking, "thinkingLevel", level);
    set(&mut thinking, "thinkingBudget", settings.reasoning.budget_tokens.map(Value::from));
    set(&mut thinking, "includeThoughts", settings.reasoning.show.map(Value::from));
    set(&mut config, "temperature", settings.temperature.map(Value::from));
    set(&mut config, "topP", settings.top_p.map(Value::from));
    set(&mut config, "maxOutputTokens", settings.max_tokens.map(Value::from));
    set(&mut config, "seed", settings.seed.map(Value::from));
    set(&mut config, "thinkingConfig", (!thinking.is_empty()).then_some(Value::Object(thinking)));
    if let Some(Value::Object(extra)) = settings.extra.get(GENERATION_CONFIG) {
        merge(&mut config, extra);
    }
    config
}

fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(value)) => merge(inner, value),
            (_, value) => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}
