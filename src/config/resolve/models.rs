//! Resolves models, with their defaults, and the model from the environment, so that a first run needs no configuration.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolgate_core::id::ModelName;
use toolgate_settings::model::{Key, KeyCommand, Proxy, Reasoning, Settings, Timeouts};

use crate::error::Fault;
use crate::expand::Env;
use crate::places::AdapterSetting;
use crate::resolver::{Kind, Resolver};
use crate::settings::{Api, HttpModelSettings, ModelSettings, TraceContext};
use crate::spanned::{Located, Text};
use crate::written::{HttpModel, Model};

/// A provider whose key alone names a model.
#[derive(Clone, Copy, Debug)]
pub struct Provider {
    pub api: Api,
    /// Its name for people.
    pub name: &'static str,
    /// The variable with its key.
    pub key_variable: &'static str,
    /// The default model: a small one that calls tools well.
    pub model: &'static str,
}

/// The providers, in the order in which the environment chooses one.
pub const PROVIDERS: [Provider; 3] = [
    Provider { api: Api::OpenAiChat, name: "openai", key_variable: "OPENAI_API_KEY", model: "gpt-5-mini" },
    Provider { api: Api::Anthropic, name: "anthropic", key_variable: "ANTHROPIC_API_KEY", model: "claude-haiku-4-5" },
    Provider { api: Api::Gemini, name: "gemini", key_variable: "GEMINI_API_KEY", model: "gemini-flash-latest" },
];

impl Provider {
    /// The provider whose public server has this address. It refuses requests without a key.
    pub fn at(base_url: &str) -> Option<Self> {
        let at = host(base_url)?;
        PROVIDERS.into_iter().find(|provider| provider.host() == at)
    }

    /// The host of its public server.
    pub fn host(self) -> &'static str {
        host(default_url(self.api)).unwrap_or_default()
    }
}

/// The host and port of an address, without user and password.
fn host(url: &str) -> Option<&str> {
    url.split_once("://")?.1.split(['/', '?', '#']).next()?.rsplit('@').next()
}

/// How to fix an environment that names no model.
const ENVIRONMENT_REMEDY: &str = "set TOOLGATE_MODEL_URL (with TOOLGATE_MODEL and TOOLGATE_MODEL_KEY), OPENAI_API_KEY, \
     ANTHROPIC_API_KEY or GEMINI_API_KEY, or configure a model in toolgate.yaml (`toolgate init` writes one)";

type ModelEntries = BTreeMap<String, Located<Model>>;

/// Resolves every model. If none is configured, adds `environment`.
pub(super) fn resolve(written: Option<&ModelEntries>, scope: &mut Resolver<'_>) -> BTreeMap<ModelName, ModelSettings> {
    let Some(written) = written.filter(|written| !written.is_empty()) else {
        return BTreeMap::from([("environment".into(), from_environment(scope))]);
    };
    let mut models = BTreeMap::new();
    for (name, model) in written {
        scope.name("a model", name, model.place());
        let settings = scope.about(Kind::Model, name, |scope| match model.value() {
            Model::OpenAiChat(model) => http(Api::OpenAiChat, model, scope),
            Model::OpenAiResponses(model) => http(Api::OpenAiResponses, model, scope),
            Model::Anthropic(model) => http(Api::Anthropic, model, scope),
            Model::Gemini(model) => http(Api::Gemini, model, scope),
            Model::OpenAiImages(model) => http(Api::OpenAiImages, model, scope),
            Model::Scripted(script) => ModelSettings::Scripted { file: scope.path(&script.file), is_stand_in: false },
            // Resolved below: it may refer to any other model.
            Model::Environment(_) => from_environment(scope),
        });
        scope.remember(AdapterSetting::Model(name.as_str().into()), model.place());
        models.insert(ModelName::from(name.as_str()), settings);
    }
    for (name, model) in written {
        if let Model::Environment(environment) = model.value()
            && let Some(otherwise) = &environment.otherwise
        {
            let stand_in = resolve_fallback(otherwise, written, &models, scope);
            if let Some(settings) = models.get_mut(&ModelName::from(name.as_str()))
                && let (ModelSettings::Missing { .. }, Some(stand_in)) = (&*settings, stand_in)
            {
                *settings = match stand_in {
                    ModelSettings::Scripted { file, .. } => ModelSettings::Scripted { file, is_stand_in: true },
                    other @ (ModelSettings::Http(_) | ModelSettings::Missing { .. }) => other,
                };
            }
        }
    }
    models
}

fn from_environment(scope: &Resolver<'_>) -> ModelSettings {
    match model_of_environment(scope.env) {
        Some(settings) => ModelSettings::Http(Box::new(settings)),
        None => ModelSettings::Missing { remedy: ENVIRONMENT_REMEDY.into() },
    }
}

/// The model from `TOOLGATE_MODEL_URL`, or else from a provider's key. Empty variables count as unset.
fn model_of_environment(env: Env<'_>) -> Option<HttpModelSettings> {
    let var = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(url) = var("TOOLGATE_MODEL_URL") {
        let model = var("TOOLGATE_MODEL").unwrap_or_else(|| "default".into());
        let key = var("TOOLGATE_MODEL_KEY").map(|key| Key::Fixed(key.into()));
        return Some(HttpModelSettings { api: Api::OpenAiChat, settings: plain(&url, key, model) });
    }
    PROVIDERS.into_iter().find_map(|Provider { api, key_variable, model, .. }| {
        let key = Key::Fixed(var(key_variable)?.into());
        let prefix = key_variable.trim_end_matches("_API_KEY");
        let url = var(&format!("{prefix}_BASE_URL")).unwrap_or_else(|| default_url(api).into());
        let model = var(&format!("{prefix}_MODEL")).unwrap_or_else(|| model.into());
        Some(HttpModelSettings { api, settings: plain(&url, Some(key), model) })
    })
}

/// The model to use when the environment names none. It is validated even when it is not used.
fn resolve_fallback(
    otherwise: &Text,
    written: &ModelEntries,
    models: &BTreeMap<ModelName, ModelSettings>,
    scope: &mut Resolver<'_>,
) -> Option<ModelSettings> {
    let name = scope.text(otherwise);
    match written.get(&name).map(Located::value) {
        None => {
            scope.unknown(Kind::Model, otherwise, written.keys().map(String::as_str));
            None
        }
        Some(Model::Environment(_)) => {
            let fault = Fault::new(format!("`{name}` itself depends on the environment"));
            scope.fault(fault.with_remedy("name a model that is always available"), otherwise.place());
            None
        }
        Some(
            Model::OpenAiChat(_)
            | Model::OpenAiResponses(_)
            | Model::Anthropic(_)
            | Model::Gemini(_)
            | Model::OpenAiImages(_)
            | Model::Scripted(_),
        ) => models.get(&ModelName::from(name)).cloned(),
    }
}

fn http(api: Api, written: &HttpModel, scope: &mut Resolver<'_>) -> ModelSettings {
    let base_url = written.base_url.as_ref().map_or_else(|| default_url(api).to_owned(), |url| scope.url(url));
    let (timeouts, usual) = (written.timeouts.as_ref(), Timeouts::default());
    let reasoning = written.reasoning.as_ref();
    let settings = Settings {
        headers: scope.secrets(written.headers.as_ref()),
        proxy: written.proxy.as_ref().map(|written| proxy(written, scope)).unwrap_or_default(),
        timeouts: Timeouts {
            connect: scope.seconds(timeouts.and_then(|t| t.connect_s.as_ref()), usual.connect.as_secs()),
            first_token: scope.seconds(timeouts.and_then(|t| t.first_token_s.as_ref()), usual.first_token.as_secs()),
            idle: scope.seconds(timeouts.and_then(|t| t.idle_s.as_ref()), usual.idle.as_secs()),
            total: scope.seconds(timeouts.and_then(|t| t.total_s.as_ref()), usual.total.as_secs()),
        },
        stream: written.stream.unwrap_or(true),
        temperature: written.temperature,
        top_p: written.top_p,
        seed: written.seed,
        max_tokens: written.max_tokens,
        reasoning: Reasoning {
            effort: reasoning.and_then(|r| r.effort.as_ref()).map(|effort| scope.text(effort)),
            budget_tokens: reasoning.and_then(|r| r.budget_tokens),
            show: reasoning.and_then(|r| r.show),
            send_back: reasoning.and_then(|r| r.send_back),
        },
        tool_choice: written.tool_choice.as_ref().map(|choice| scope.text(choice).into()).unwrap_or_default(),
        parallel_tool_calls: written.parallel_tool_calls,
        strict_tools: written.strict_tools.unwrap_or(false),
        structured_output: written.structured_output,
        media: written.media.as_ref().map(|kinds| kinds.iter().copied().collect()),
        prompt_cache: written.prompt_cache.unwrap_or_default(),
        extra: written.extra.as_ref().map(|extra| expanded(extra, scope)).unwrap_or_default(),
        ..plain(&base_url, key(written, scope), scope.text(&written.model))
    };
    let propagation = written.trace_context.map_or(settings.propagation, TraceContext::propagation);
    ModelSettings::Http(Box::new(HttpModelSettings { api, settings: Settings { propagation, ..settings } }))
}

fn key(written: &HttpModel, scope: &mut Resolver<'_>) -> Option<Key> {
    // An empty variable counts as unset, as elsewhere.
    let fixed = written.api_key.as_ref().map(|key| scope.text(key)).filter(|key| !key.is_empty());
    let fixed = fixed.map(|key| Key::Fixed(key.into()));
    let Some(command) = &written.api_key_command else { return fixed };
    if fixed.is_some() {
        let fault = Fault::new("a model has either `api_key` or `api_key_command`");
        scope.fault(fault.with_remedy("remove one of them"), command.place());
    }
    let mut words = command.value().iter().map(|word| scope.word(word)).collect::<Vec<_>>().into_iter();
    let Some(program) = words.next().filter(|program| !program.is_empty()) else {
        let fault = Fault::new("`api_key_command` is empty");
        scope.fault(fault.with_remedy("name a program that prints the key, and its arguments"), command.place());
        return fixed;
    };
    Some(Key::Command(KeyCommand { command: scope.program(program), args: words.collect() }))
}

fn proxy(written: &Text, scope: &mut Resolver<'_>) -> Proxy {
    match written.value().as_str() {
        "environment" => Proxy::Environment,
        "direct" => Proxy::Direct,
        _ => Proxy::Url(scope.url(written).into()),
    }
}

fn expanded(extra: &Located<Map<String, Value>>, scope: &mut Resolver<'_>) -> Map<String, Value> {
    extra.value().iter().map(|(name, value)| (name.clone(), scope.json(value, extra.place()))).collect()
}

/// The provider's default base URL.
fn default_url(api: Api) -> &'static str {
    match api {
        Api::OpenAiChat | Api::OpenAiResponses | Api::OpenAiImages => "https://api.openai.com/v1",
        Api::Anthropic => "https://api.anthropic.com",
        Api::Gemini => "https://generativelanguage.googleapis.com/v1beta",
    }
}

/// A model with every default: only the base URL, key and name are given.
fn plain(base_url: &str, key: Option<Key>, model: String) -> Settings {
    Settings { api_key: key, ..Settings::new(base_url.trim_end_matches('/'), model) }
}
