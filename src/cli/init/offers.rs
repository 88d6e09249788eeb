//! Offers of `toolgate init`: models and MCP servers that the machine has already, and the policies.

use std::collections::BTreeSet;

use crate::app::{LocalModelServer, why_missing};
use crate::cli::setup::environment;
use crate::cli::surroundings::{McpFile, Surroundings};
use crate::cli::text::{block, list};
use crate::config::{Api, PROVIDERS, Provider, ServerDefinition, StarterModel};

/// The most models of a local server to offer.
const MOST_MODELS: usize = 8;

/// A model with its description.
pub(super) struct OfferedModel {
    pub(super) about: String,
    pub(super) model: StarterModel,
}

/// A server of an editor's file.
pub(super) struct OfferedServer {
    pub(super) id: String,
    pub(super) definition: ServerDefinition,
    /// The file, for people.
    pub(super) file: String,
}

impl OfferedServer {
    /// The variables that it needs and that are not set.
    pub(super) fn unset(&self) -> Vec<&str> {
        let names = self.definition.variables.iter().map(String::as_str);
        names.filter(|name| environment(name).is_none()).collect()
    }

    /// Why its program cannot be started.
    fn missing_program(&self) -> Option<&'static str> {
        why_missing(self.definition.program.as_deref()?, None, &std::env::var_os("PATH")?)
    }

    /// Whether it can be started as it is.
    pub(super) fn is_startable(&self) -> bool {
        self.unset().is_empty() && self.missing_program().is_none()
    }

    pub(super) fn describe(&self) -> String {
        let hidden = &self.definition.hidden;
        let (copied, unset): (Vec<&str>, Vec<&str>) =
            self.unset().into_iter().partition(|name| hidden.iter().any(|hidden| hidden == name));
        let told = [(unset, "needs", "not set"), (copied, "has a value for", "not copied")];
        let told = told.into_iter().filter(|(names, ..)| !names.is_empty());
        let told: String = told.map(|(names, verb, state)| format!("; {verb} {}, {state}", list(names))).collect();
        let missing = self.missing_program().map(|why| format!("; cannot be started: {why}")).unwrap_or_default();
        format!("{}: {}  ({}{told}{missing})", self.id, self.definition.summary, self.file)
    }
}

/// The models, the best one first. The last one always works.
pub(super) fn models(surroundings: &Surroundings) -> Vec<OfferedModel> {
    let is_set = |name: &str| surroundings.keys.contains(&name);
    let environment = |about: &str| OfferedModel { about: about.to_owned(), model: StarterModel::Environment };
    let mut models = Vec::new();
    if is_set("TOOLGATE_MODEL_URL") {
        models.push(environment("the model of TOOLGATE_MODEL_URL"));
    }
    models.extend(PROVIDERS.into_iter().filter(|provider| is_set(provider.key_variable)).map(|provider| {
        let model = of_provider(provider, None);
        let name = match &model {
            StarterModel::Server { model, .. } => model.as_str(),
            StarterModel::Environment => provider.model,
        };
        OfferedModel { about: format!("{name} of {}, with {}", provider.name, provider.key_variable), model }
    }));
    models.extend(surroundings.model_servers.iter().flat_map(of_local_server));
    if !is_set("TOOLGATE_MODEL_URL") {
        let about = "no model yet: a script stands in until the environment names one";
        models.push(environment(about));
    }
    models
}

/// Whether the environment names the model of a starter without a model of its own.
pub(super) fn names_model() -> bool {
    environment("TOOLGATE_MODEL_URL").is_some_and(|value| !value.is_empty())
}

/// A provider's model with the key of the environment.
pub(super) fn of_provider(provider: Provider, model: Option<&str>) -> StarterModel {
    let prefix = provider.key_variable.trim_end_matches("_API_KEY");
    let is_set = |name: &String| environment(name).is_some_and(|value| !value.is_empty());
    let base_url = Some(format!("{prefix}_BASE_URL")).filter(is_set).map(|name| format!("${{{name}}}"));
    let named = environment(&format!("{prefix}_MODEL")).filter(|name| !name.is_empty());
    let model = model.map(str::to_owned).or(named).unwrap_or_else(|| provider.model.to_owned());
    StarterModel::Server { api: provider.api, base_url, model, key_variable: Some(provider.key_variable) }
}

/// A model on a server that needs no key.
pub(super) fn at(base_url: &str, model: &str) -> StarterModel {
    let base_url = Some(base_url.to_owned());
    StarterModel::Server { api: Api::OpenAiChat, base_url, model: model.to_owned(), key_variable: None }
}

fn of_local_server(server: &LocalModelServer) -> impl Iterator<Item = OfferedModel> {
    // Models for embeddings answer no message.
    let chat = server.models.iter().filter(|name| !name.contains("embed")).take(MOST_MODELS);
    chat.map(|name| OfferedModel {
        about: format!("{name} at {} ({})", server.base_url, server.program),
        model: at(&server.base_url, name),
    })
}

/// The usable servers, each id once, and a sentence for each of the others.
pub(super) fn servers(files: &[McpFile]) -> (Vec<OfferedServer>, Vec<String>) {
    let (mut offered, mut left_out, mut ids) = (Vec::new(), Vec::new(), BTreeSet::new());
    for file in files {
        let servers = match &file.servers {
            Ok(servers) => servers,
            Err(error) => {
                left_out.push(format!("{} cannot be read: {}", file.name(), block(&error.plain())));
                continue;
            }
        };
        for server in servers {
            let id = &server.id;
            match &server.definition {
                Err(reason) => left_out.push(format!("`{id}` of {} is left out: {reason}", file.name())),
                Ok(_) if !ids.insert(id.clone()) => {
                    left_out
                        .push(format!("`{id}` of {} is left out: another file has a server of that name", file.name()));
                }
                Ok(definition) => {
                    offered.push(OfferedServer { id: id.clone(), definition: definition.clone(), file: file.name() })
                }
            }
        }
    }
    (offered, left_out)
}
