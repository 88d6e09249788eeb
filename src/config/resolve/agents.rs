//! Agents: written in the file itself or in Markdown files of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::id::{AgentName, ModelName, ServerId};
use toolgate_core::policy::Policy;
use toolgate_core::run::{Candidate, DEFAULT_COOLDOWN_S, Limits};
use toolgate_core::tool::{AskHuman, ToolFilter};

use super::generative::{self, is_generative};
use super::policies;
use crate::error::Fault;
use crate::resolver::{Kind, Resolver};
use crate::settings::{AgentSettings, ModelSettings, ServerSettings};
use crate::spanned::{Located, Location, Text};
use crate::written::{Agent, AskHumanChoice, Fallback, Limits as WrittenLimits, Tools};
use crate::{external, markdown, yaml};

/// The names that agents may refer to.
struct KnownNames<'a> {
    models: &'a BTreeMap<ModelName, ModelSettings>,
    servers: &'a BTreeMap<ServerId, ServerSettings>,
    policies: &'a BTreeMap<String, Arc<Policy>>,
}

/// Resolves every agent. If none is configured, adds `assistant`, which may use every server.
pub(super) fn resolve(
    written: Option<&BTreeMap<String, Located<Agent>>>,
    models: &BTreeMap<ModelName, ModelSettings>,
    servers: &BTreeMap<ServerId, ServerSettings>,
    policies: &BTreeMap<String, Arc<Policy>>,
    scope: &mut Resolver<'_>,
) -> BTreeMap<AgentName, AgentSettings> {
    let known = KnownNames { models, servers, policies };
    let Some(written) = written.filter(|written| !written.is_empty()) else {
        let assistant = AgentName::from("assistant");
        let settings = known.agent(&assistant, &Agent::default(), String::new(), None, scope);
        // An image model cannot use servers.
        let has_tools = models.get(&settings.model).is_none_or(|model| !is_generative(model));
        let servers = servers.keys().filter(|_| has_tools).cloned().collect();
        let settings = AgentSettings { servers, ..settings };
        return BTreeMap::from([(assistant, settings)]);
    };
    let mut agents = BTreeMap::new();
    for (name, agent) in written {
        scope.name("an agent", name, agent.place());
        let name = AgentName::from(name.as_str());
        let settings = match &agent.value().file {
            Some(file) => known.read_markdown(&name, file, agent.value(), scope),
            None => {
                // Text for a model: anything that looks like a variable is meant literally.
                let instructions = agent.value().instructions.as_ref().map(|text| text.value().trim_end().to_owned());
                Some(known.agent(&name, agent.value(), instructions.unwrap_or_default(), agent.place(), scope))
            }
        };
        agents.extend(settings.map(|settings| (name, settings)));
    }
    agents
}

impl KnownNames<'_> {
    fn read_markdown(
        &self,
        name: &AgentName,
        file: &Text,
        beside: &Agent,
        scope: &mut Resolver<'_>,
    ) -> Option<AgentSettings> {
        if beside.says_more_than_file() {
            let fault = Fault::new("an agent with a `file` has no other keys here");
            scope.fault(fault.with_remedy("move them into the front matter of the file"), file.place());
        }
        let source = match yaml::read(&scope.path(file)) {
            Ok(source) => source,
            Err(fault) => {
                scope.unreadable(fault, file.place());
                return None;
            }
        };
        let mut inner = scope.of_file(source);
        let settings = match markdown::agent(&inner.source) {
            Ok((agent, instructions)) => {
                for text in agent.file.iter().chain(&agent.instructions) {
                    let fault = Fault::new("`file` and `instructions` are not allowed in front matter");
                    inner.fault(fault.with_remedy("the text below the front matter is the instructions"), text.place());
                }
                Some(self.agent(name, &agent, instructions, Location::FIRST, &mut inner))
            }
            Err(fault) => {
                scope.absorb_error(&fault.into(), file.place());
                None
            }
        };
        scope.absorb(inner);
        settings
    }

    fn agent(
        &self,
        name: &AgentName,
        written: &Agent,
        instructions: String,
        place: Option<Location>,
        scope: &mut Resolver<'_>,
    ) -> AgentSettings {
        let model = self.model(name, written.model.as_ref(), place, scope);
        if self.models.get(&model).is_some_and(is_generative) {
            let place = written.instructions.as_ref().map_or(place, Located::place);
            generative::check(name, written, &instructions, place, scope);
        }
        let priorities = written.priorities.iter().flat_map(|priorities| &priorities.0);
        AgentSettings {
            name: name.clone(),
            fallback: self.fallback(&model, written.fallback.as_deref().unwrap_or_default(), scope),
            model,
            cooldown_s: written.cooldown_s.unwrap_or(DEFAULT_COOLDOWN_S),
            instructions,
            servers: written.servers.iter().flatten().filter_map(|id| self.server(id, scope)).collect(),
            tools: written.tools.as_ref().map(|tools| filter(tools, scope)).unwrap_or_default(),
            priorities: priorities
                .map(|(pattern, priority)| (scope.pattern(pattern, priority.place()), *priority.value()))
                .collect(),
            tiers: written.tiers.unwrap_or_default(),
            policy: policies::of_agent(name, written.policy.as_ref(), self.policies, scope),
            ask_human: written.ask_human.as_ref().and_then(|choice| ask_human(choice.value(), scope)),
            on_deny: written.on_deny.unwrap_or_default(),
            in_doubt: written.in_doubt.unwrap_or_default(),
            output_schema: written.output_schema.as_ref().and_then(|schema| output_schema(schema, scope)),
            external_tools: external::tools(written.external_tools.as_deref().unwrap_or_default(), scope),
            limits: written.limits.as_ref().map(|limits| bounds(limits, scope)).unwrap_or_default(),
        }
    }

    fn model(
        &self,
        agent: &AgentName,
        written: Option<&Text>,
        place: Option<Location>,
        scope: &mut Resolver<'_>,
    ) -> ModelName {
        let Some(written) = written else {
            let mut all = self.models.keys();
            return match (all.next(), all.next()) {
                (Some(only), None) => only.clone(),
                _ => {
                    let known: Vec<&str> = self.models.keys().map(ModelName::as_str).collect();
                    let fault = Fault::new(format!("agent `{agent}` has no model"));
                    scope.fault(fault.with_remedy(format!("add `model:` with one of: {}", known.join(", "))), place);
                    ModelName::from("")
                }
            };
        };
        self.named_model(written, scope)
    }

    fn fallback(&self, model: &ModelName, written: &[Located<Fallback>], scope: &mut Resolver<'_>) -> Vec<Candidate> {
        let mut chain: Vec<Candidate> = Vec::new();
        for entry in written {
            let (written, attempts) = match entry.value() {
                Fallback::Name(name) => (&entry.with(name.clone()), None),
                Fallback::Entry(entry) => (&entry.model, entry.attempts.as_ref()),
            };
            let name = self.named_model(written, scope);
            if name == *model || chain.iter().any(|candidate| candidate.model == name) {
                let fault = Fault::new(format!("model `{name}` cannot be its own fallback"));
                let remedy = "name each model once, as `model` or in `fallback`; `attempts` sets how often it is tried";
                scope.fault(fault.with_remedy(remedy), written.place());
            }
            if self.models.get(&name).is_some_and(is_generative) {
                let fault = Fault::new(format!("model `{name}` generates images and cannot be a fallback"));
                scope.fault(fault.with_remedy("name a chat model"), written.place());
            }
            let attempts = attempts.map(|attempts| scope.at_least_one(Some(attempts), 1));
            chain.push(Candidate { model: name, attempts });
        }
        chain
    }

    fn named_model(&self, written: &Text, scope: &mut Resolver<'_>) -> ModelName {
        let name = ModelName::from(scope.text(written));
        if !self.models.contains_key(&name) {
            scope.unknown(Kind::Model, written, self.models.keys().map(ModelName::as_str));
        }
        name
    }

    fn server(&self, written: &Text, scope: &mut Resolver<'_>) -> Option<ServerId> {
        let id = ServerId::from(scope.text(written));
        if self.servers.contains_key(&id) {
            return Some(id);
        }
        scope.unknown(Kind::Server, written, self.servers.keys().map(ServerId::as_str));
        None
    }
}

fn filter(written: &Tools, scope: &mut Resolver<'_>) -> ToolFilter {
    let mut patterns = |texts: &[Text]| texts.iter().map(|text| scope.pattern(text.value(), text.place())).collect();
    ToolFilter { allow: patterns(&written.allow), deny: patterns(&written.deny) }
}

/// An inline schema, or the schema in the file at that path.
fn output_schema(written: &Located<Value>, scope: &mut Resolver<'_>) -> Option<Value> {
    match written.value() {
        schema @ Value::Object(_) => Some(schema.clone()),
        Value::String(path) => {
            let source = yaml::read(&scope.folder.join(path));
            let source = source.map_err(|fault| scope.unreadable(fault, written.place())).ok()?;
            yaml::parse(&source).map_err(|fault| scope.absorb_error(&fault.into(), written.place())).ok()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            let fault = Fault::new("an output schema is a JSON Schema, or the path of a file with one");
            scope.fault(fault.with_remedy("write `output_schema: { type: object, … }`"), written.place());
            None
        }
    }
}

fn ask_human(written: &AskHumanChoice, scope: &mut Resolver<'_>) -> Option<AskHuman> {
    match written {
        AskHumanChoice::Whether(whether) => whether.then(AskHuman::default),
        AskHumanChoice::Within(within) => {
            let deadline_s = within.deadline_s.as_ref().map(|seconds| scope.at_least_one(Some(seconds), 1));
            Some(AskHuman { deadline_s })
        }
    }
}

fn bounds(written: &WrittenLimits, scope: &mut Resolver<'_>) -> Limits {
    let default = Limits::default();
    Limits {
        max_tool_interactions: written.max_tool_interactions.unwrap_or(default.max_tool_interactions),
        max_iterations: scope.at_least_one(written.max_iterations.as_ref(), default.max_iterations),
        max_mcp_calls: written.max_mcp_calls,
        max_tokens: written.max_tokens,
        max_cost_usd: written.max_cost_usd,
        deadline_s: written.deadline_s,
        max_corrections: written.max_corrections.unwrap_or(default.max_corrections),
        max_attempts: scope.at_least_one(written.max_attempts.as_ref(), default.max_attempts),
        max_result_bytes: written
            .max_result_bytes
            .as_ref()
            .map_or(default.max_result_bytes, |bytes| scope.result_bytes(bytes)),
    }
}

impl Agent {
    fn says_more_than_file(&self) -> bool {
        let Self {
            file: _,
            model,
            fallback,
            cooldown_s,
            instructions,
            servers,
            tools,
            priorities,
            tiers,
            policy,
            ask_human,
            on_deny,
            in_doubt,
            output_schema,
            external_tools,
            limits,
        } = self;
        model.is_some()
            || fallback.is_some()
            || cooldown_s.is_some()
            || instructions.is_some()
            || servers.is_some()
            || tools.is_some()
            || priorities.is_some()
            || tiers.is_some()
            || policy.is_some()
            || ask_human.is_some()
            || on_deny.is_some()
            || in_doubt.is_some()
            || output_schema.is_some()
            || external_tools.is_some()
            || limits.is_some()
    }
}
