//! Model adapters, opened from their settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::error::AppError;
use super::prices::Pricing;
use super::propagation::{allowed, propagation};
use crate::config::{self, Api, HttpModelSettings, KeySettings, ModelSettings, ProxySettings, Settings};
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::ModelName;
use crate::core::trace::Propagation;
use crate::models::scripted::{Script, ScriptedModel};
use crate::models::unusable_model::UnusableModel;
use crate::models::{self, anthropic, gemini, openai_chat, openai_images, openai_responses};
use crate::ports::{Model, ModelIdentity};
use crate::telemetry::spans::IdentityOf;

/// The kinds of models and their names in the configuration.
const KINDS: [(Api, &str); 5] = [
    (Api::OpenAiChat, "openai_chat"),
    (Api::OpenAiResponses, "openai_responses"),
    (Api::OpenAiImages, "openai_images"),
    (Api::Anthropic, "anthropic"),
    (Api::Gemini, "gemini"),
];

/// The models of a configuration, by name.
pub type Models = BTreeMap<ModelName, Arc<dyn Model>>;

/// Opens every model of a configuration, with the cost of its replies as far as it is known. Sends no request.
pub fn open(settings: &Settings) -> Result<Models, AppError> {
    let mut models = Models::new();
    let propagation = propagation()?;
    for (name, model) in &settings.models {
        let model = open_one(name, model, propagation)?;
        let pricing = Pricing::of(settings, name, model.identity());
        models.insert(name.clone(), pricing.applied_to(model));
    }
    Ok(models)
}

/// The identity of each model for spans.
pub fn identities(models: &Models) -> IdentityOf {
    Identities::of(models).look_up()
}

/// The identities of models, including those of earlier configurations: runs that started with them may still be
/// active.
pub(super) struct Identities(Arc<ArcSwap<BTreeMap<ModelName, ModelIdentity>>>);

impl Identities {
    pub(super) fn of(models: &Models) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(named(models).collect())))
    }

    /// Adds these models.
    pub(super) fn know(&self, models: &Models) {
        self.0.rcu(|known| {
            let mut known = BTreeMap::clone(known);
            known.extend(named(models));
            known
        });
    }

    pub(super) fn look_up(&self) -> IdentityOf {
        let known = self.0.clone();
        Arc::new(move |name: &ModelName| known.load().get(name).cloned())
    }
}

fn named(models: &Models) -> impl Iterator<Item = (ModelName, ModelIdentity)> {
    models.iter().map(|(name, model)| (name.clone(), model.identity().clone()))
}

/// The constructor of models of this kind.
fn adapter(api: Api) -> fn(&models::Settings) -> Result<models::HttpModel, models::SettingsError> {
    match api {
        Api::OpenAiChat => openai_chat::model,
        Api::OpenAiResponses => openai_responses::model,
        Api::OpenAiImages => openai_images::model,
        Api::Anthropic => anthropic::model,
        Api::Gemini => gemini::model,
    }
}

/// The name of a kind in the configuration.
pub fn kind_of(api: Api) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == api).map_or("unknown", |(_, kind)| kind)
}

/// A model of this kind that only answers how it encodes tools; its address is a placeholder. `None` for an unknown
/// kind; an error message for a kind that cannot be used.
pub fn model_of_kind(kind: &str) -> Option<Result<Arc<dyn Model>, String>> {
    let (api, _) = KINDS.iter().find(|(_, known)| *known == kind)?;
    let opened = adapter(*api)(&models::Settings::new("http://localhost", "any"));
    Some(opened.map(|model| Arc::new(model) as Arc<dyn Model>).map_err(|error| error.to_string()))
}

fn open_one(name: &ModelName, settings: &ModelSettings, propagation: Propagation) -> Result<Arc<dyn Model>, AppError> {
    Ok(match settings {
        ModelSettings::Scripted { file } => {
            let script: Script = config::read_file(file).map_err(AppError::Config)?;
            Arc::new(ScriptedModel::new(name.as_str(), script))
        }
        ModelSettings::Http(settings) => {
            let unusable =
                |reason: models::SettingsError| AppError::Model { model: name.clone(), reason: reason.to_string() };
            Arc::new(adapter(settings.api)(&adapter_settings(settings, propagation)).map_err(unusable)?)
        }
        ModelSettings::Missing { remedy } => {
            let message = format!("no model is configured: {remedy}");
            Arc::new(UnusableModel::new(name.as_str(), Failure::new(ErrorCode::Configuration, message)))
        }
    })
}

fn adapter_settings(settings: &HttpModelSettings, propagation: Propagation) -> models::Settings {
    let HttpModelSettings { api: _, base_url, model, .. } = settings;
    models::Settings {
        egress: settings.egress.clone(),
        api_key: settings.key.as_ref().map(key),
        headers: settings.headers.clone(),
        proxy: match &settings.proxy {
            ProxySettings::Environment => models::Proxy::Environment,
            ProxySettings::Direct => models::Proxy::Direct,
            ProxySettings::Url(url) => models::Proxy::Url(url.clone()),
        },
        stream: settings.stream,
        timeouts: models::Timeouts {
            connect: settings.connect_timeout,
            first_token: settings.first_token_timeout,
            idle: settings.idle_timeout,
            total: settings.total_timeout,
        },
        temperature: settings.temperature,
        max_tokens: settings.max_tokens,
        top_p: settings.top_p,
        seed: settings.seed,
        reasoning: models::Reasoning {
            effort: settings.reasoning_effort.clone(),
            budget_tokens: settings.reasoning_budget_tokens,
            show: settings.show_reasoning,
            send_back: settings.send_reasoning_back,
        },
        tool_choice: match settings.tool_choice.as_deref() {
            None | Some("auto") => models::ToolChoice::Auto,
            Some("required") => models::ToolChoice::Required,
            Some(name) => models::ToolChoice::Tool(name.to_owned()),
        },
        parallel_tool_calls: settings.parallel_tool_calls,
        strict_tools: settings.strict_tools,
        structured_output: settings.structured_output,
        media: settings.media.as_ref().map(|kinds| kinds.iter().copied().map(media_kind).collect()),
        prompt_cache: match settings.prompt_cache {
            config::PromptCache::Automatic => models::PromptCache::Automatic,
            config::PromptCache::FiveMinutes => models::PromptCache::FiveMinutes,
            config::PromptCache::OneHour => models::PromptCache::OneHour,
            config::PromptCache::Off => models::PromptCache::Off,
        },
        propagation: propagation.and(allowed(settings.trace_context)),
        extra: settings.extra.clone(),
        ..models::Settings::new(base_url, model)
    }
}

fn key(key: &KeySettings) -> models::Key {
    match key {
        KeySettings::Fixed(key) => models::Key::Fixed(key.clone()),
        KeySettings::Command { command, args } => {
            models::Key::From(Arc::new(models::KeyCommand { command: command.clone(), args: args.clone() }))
        }
    }
}

fn media_kind(kind: config::MediaKind) -> models::MediaKind {
    match kind {
        config::MediaKind::Images => models::MediaKind::Images,
        config::MediaKind::Files => models::MediaKind::Files,
        config::MediaKind::Audio => models::MediaKind::Audio,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_known_by_its_word() {
        for (api, kind) in KINDS {
            assert_eq!(kind_of(api), kind);
            assert!(model_of_kind(kind).is_some(), "{kind}");
        }
        assert!(model_of_kind("scripted").is_none());
    }
}
