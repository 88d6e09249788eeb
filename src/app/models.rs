//! Model adapters, opened from their settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::error::AppError;
use super::prices::Pricing;
use super::propagation::propagation;
use crate::config::{self, AdapterSetting, Api, ConfigError, HttpModelSettings, ModelSettings, Settings};
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::ModelName;
use crate::core::trace::Propagation;
use crate::models::scripted::{Script, ScriptedModel};
use crate::models::unusable_model::UnusableModel;
use crate::models::{self, anthropic, gemini, openai_chat, openai_images, openai_responses};
use crate::ports::{Model, ModelIdentity};
use crate::telemetry::spans::IdentityOf;

/// The models of a configuration, by name.
pub type Models = BTreeMap<ModelName, Arc<dyn Model>>;

/// Opens every model of a configuration, with the cost of its replies as far as it is known. Sends no request.
pub fn open(settings: &Settings) -> Result<Models, AppError> {
    let mut models = Models::new();
    let propagation = propagation()?;
    let mut unusable = Vec::new();
    for (name, model) in &settings.models {
        match open_one(name, model, propagation)? {
            Ok(model) => {
                let pricing = Pricing::new(settings, name, model.identity());
                models.insert(name.clone(), pricing.applied_to(model));
            }
            Err(reason) => unusable.push((AdapterSetting::Model(name.clone()), format!("model `{name}`: {reason}"))),
        }
    }
    settings.places.check(unusable)?;
    Ok(models)
}

/// The identity of each model for spans.
pub fn identities(models: &Models) -> IdentityOf {
    Identities::new(models).look_up()
}

/// The identities of models, including those of earlier configurations: runs that started with them may still be
/// active.
pub(super) struct Identities(Arc<ArcSwap<BTreeMap<ModelName, ModelIdentity>>>);

impl Identities {
    pub(super) fn new(models: &Models) -> Self {
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

/// A model of this kind that only answers how it encodes tools; its address is a placeholder. `None` for an unknown
/// kind; an error message for a kind that cannot be used.
pub fn model_of_kind(kind: &str) -> Option<Result<Arc<dyn Model>, String>> {
    let api = Api::ALL.into_iter().find(|api| api.key() == kind)?;
    let opened = adapter(api)(&models::Settings::new("http://localhost", "any"));
    Some(opened.map(|model| Arc::new(model) as Arc<dyn Model>).map_err(|error| error.to_string()))
}

/// The model; the inner error says why its settings cannot be used.
fn open_one(
    name: &ModelName,
    settings: &ModelSettings,
    propagation: Propagation,
) -> Result<Result<Arc<dyn Model>, String>, ConfigError> {
    Ok(match settings {
        ModelSettings::Scripted { file, .. } if !file.exists() => Err(format!("there is no file `{}`", file.display())),
        ModelSettings::Scripted { file, .. } => {
            let script: Script = config::read_file(file)?;
            Ok(Arc::new(ScriptedModel::new(name.as_str(), script)))
        }
        ModelSettings::Http(settings) => {
            let HttpModelSettings { api, settings } = &**settings;
            let propagation = propagation.and(settings.propagation);
            let settings = models::Settings { propagation, ..settings.clone() };
            let model = adapter(*api)(&settings).map(|model| Arc::new(model) as Arc<dyn Model>);
            model.map_err(|error| error.to_string())
        }
        ModelSettings::Missing { remedy } => {
            let message = format!("no model is configured: {remedy}");
            Ok(Arc::new(UnusableModel::new(name.as_str(), Failure::new(ErrorCode::Configuration, message))))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_known_by_its_word() {
        for api in Api::ALL {
            assert!(model_of_kind(api.key()).is_some(), "{}", api.key());
        }
        assert!(model_of_kind("scripted").is_none());
    }
}
