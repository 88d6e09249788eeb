//! Models: what is written, and where the environment stands in.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::environment;
use crate::config::error::Fault;
use crate::config::placed::{Placed, Text};
use crate::config::scope::{Kind, Scope};
use crate::config::settings::{ModelSettings, OpenAiChatSettings};
use crate::config::written::{Model, OpenAiChat};
use crate::core::id::ModelName;

pub(super) const OPENAI_URL: &str = "https://api.openai.com/v1";
pub(super) const CONNECT_SECONDS: u64 = 10;
pub(super) const IDLE_SECONDS: u64 = 120;
pub(super) const TOTAL_SECONDS: u64 = 600;

type Written = BTreeMap<String, Placed<Model>>;

/// Every model. Without any there is `environment`.
pub(super) fn resolve(written: Option<&Written>, scope: &mut Scope<'_>) -> BTreeMap<ModelName, ModelSettings> {
    let Some(written) = written.filter(|written| !written.is_empty()) else {
        return BTreeMap::from([("environment".into(), from_environment(scope))]);
    };
    let mut models = BTreeMap::new();
    for (name, model) in written {
        scope.name("a model", name, model.place());
        let settings = match model.value() {
            Model::OpenAiChat(chat) => ModelSettings::OpenAiChat(Box::new(openai_chat(chat, scope))),
            Model::Scripted(script) => ModelSettings::Scripted { file: scope.path(&script.file) },
            // Resolved below: it may name any of the others.
            Model::Environment(_) => from_environment(scope),
        };
        models.insert(ModelName::from(name.as_str()), settings);
    }
    for (name, model) in written {
        if let Model::Environment(environment) = model.value()
            && let Some(otherwise) = &environment.otherwise
        {
            let stand_in = stand_in(otherwise, written, &models, scope);
            if let Some(settings) = models.get_mut(&ModelName::from(name.as_str()))
                && let (ModelSettings::Missing { .. }, Some(stand_in)) = (&*settings, stand_in)
            {
                *settings = stand_in;
            }
        }
    }
    models
}

fn from_environment(scope: &Scope<'_>) -> ModelSettings {
    match environment::model(scope.env) {
        Some(settings) => ModelSettings::OpenAiChat(Box::new(settings)),
        None => ModelSettings::Missing { remedy: environment::REMEDY.into() },
    }
}

/// The model that is used when the environment names none. Checked even when it does.
fn stand_in(
    otherwise: &Text,
    written: &Written,
    models: &BTreeMap<ModelName, ModelSettings>,
    scope: &mut Scope<'_>,
) -> Option<ModelSettings> {
    let name = scope.text(otherwise);
    match written.get(&name).map(Placed::value) {
        None => {
            scope.unknown(Kind::Model, otherwise, written.keys().map(String::as_str));
            None
        }
        Some(Model::Environment(_)) => {
            let fault = Fault::new(format!("`{name}` itself depends on the environment"));
            scope.fault(fault.with_remedy("name a model that is always there"), otherwise.place());
            None
        }
        Some(Model::OpenAiChat(_) | Model::Scripted(_)) => models.get(&ModelName::from(name)).cloned(),
    }
}

fn openai_chat(written: &OpenAiChat, scope: &mut Scope<'_>) -> OpenAiChatSettings {
    let timeouts = written.timeouts.as_ref();
    OpenAiChatSettings {
        base_url: written
            .base_url
            .as_ref()
            .map_or_else(|| OPENAI_URL.into(), |url| scope.url(url).trim_end_matches('/').to_owned()),
        api_key: written.api_key.as_ref().map(|key| scope.secret(key)),
        model: scope.text(&written.model),
        stream: written.stream.unwrap_or(true),
        temperature: written.temperature,
        max_tokens: written.max_tokens,
        connect_timeout: scope.seconds(timeouts.and_then(|t| t.connect_s.as_ref()), CONNECT_SECONDS),
        idle_timeout: scope.seconds(timeouts.and_then(|t| t.idle_s.as_ref()), IDLE_SECONDS),
        total_timeout: scope.seconds(timeouts.and_then(|t| t.total_s.as_ref()), TOTAL_SECONDS),
        headers: scope.secrets(written.headers.as_ref()),
        extra: written.extra.as_ref().map(|extra| expanded(extra, scope)).unwrap_or_default(),
    }
}

fn expanded(extra: &Placed<Map<String, Value>>, scope: &mut Scope<'_>) -> Map<String, Value> {
    extra.value().iter().map(|(name, value)| (name.clone(), scope.json(value, extra.place()))).collect()
}
