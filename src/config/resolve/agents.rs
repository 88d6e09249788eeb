//! Agents: written in the file itself or in Markdown files of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolgate_core::id::{AgentName, ModelName, ServerId};
use toolgate_core::policy::Policy;
use toolgate_core::run::{Backoff, Candidate, Compaction, DEFAULT_COOLDOWN_S, Limits, Restart, RunRules};
use toolgate_core::tool::{AskHuman, ToolFilter};

use super::generative::{self, is_generative};
use super::{instructions as prompt, policies, project, sessions, stop_conditions};
use crate::agent::AgentSettings;
use crate::error::Fault;
use crate::places::AdapterSetting;
use crate::resolver::{Kind, Resolver};
use crate::settings::{ModelSettings, ServerSettings};
use crate::spanned::{Located, Location, Text};
use crate::written::{
    Agent, AskHumanChoice, Backoff as WrittenBackoff, Compaction as WrittenCompaction, Fallback,
    Limits as WrittenLimits, PolicyChoice, Tools,
};
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
    variant: Option<&Text>,
    models: &BTreeMap<ModelName, ModelSettings>,
    servers: &BTreeMap<ServerId, ServerSettings>,
    policies: &BTreeMap<String, Arc<Policy>>,
    scope: &mut Resolver<'_>,
) -> BTreeMap<AgentName, AgentSettings> {
    let known = KnownNames { models, servers, policies };
    let Some(written) = written.filter(|written| !written.is_empty()) else {
        let assistant = AgentName::from("assistant");
        let settings = scope.about(Kind::Agent, assistant.as_str(), |scope| {
            known.agent(&assistant, &Agent::default(), String::new(), None, scope)
        });
        // An image model cannot use servers.
        let has_tools = models.get(&settings.model).is_none_or(|model| !is_generative(model));
        let servers = servers.keys().filter(|_| has_tools).cloned().collect();
        let mut agents = BTreeMap::from([(assistant, AgentSettings { servers, ..settings })]);
        choose(variant, &mut agents, scope);
        return agents;
    };
    let mut agents = BTreeMap::new();
    for (name, agent) in written {
        scope.name("an agent", name, agent.place());
        let name = AgentName::from(name.as_str());
        let settings = scope.about(Kind::Agent, name.as_str(), |scope| match &agent.value().file {
            Some(file) => known.read_markdown(&name, file, agent.value(), scope),
            None => {
                // Text for a model: anything that looks like a variable is meant literally.
                let instructions = agent.value().instructions.as_ref().map(|text| text.value().trim_end().to_owned());
                Some(known.agent(&name, agent.value(), instructions.unwrap_or_default(), agent.place(), scope))
            }
        });
        agents.extend(settings.map(|settings| (name, settings)));
    }
    check_aliases(written, &agents, scope);
    choose(variant, &mut agents, scope);
    agents
}

/// Records aliases that are the name or the alias of another agent.
fn check_aliases(
    written: &BTreeMap<String, Located<Agent>>,
    agents: &BTreeMap<AgentName, AgentSettings>,
    scope: &mut Resolver<'_>,
) {
    let mut names: BTreeSet<&AgentName> = agents.keys().collect();
    for (name, agent) in agents {
        for alias in agent.aliases.iter().filter(|alias| !names.insert(alias)) {
            let fault = Fault::new(format!("alias `{alias}` of agent `{name}` is the name of another agent"));
            let place = written.get(name.as_str()).and_then(Located::place);
            scope.fault(fault.with_remedy("give each agent names of its own"), place);
        }
    }
}

/// Replaces every agent that has the variant by it. An empty name chooses none.
fn choose(variant: Option<&Text>, agents: &mut BTreeMap<AgentName, AgentSettings>, scope: &mut Resolver<'_>) {
    let Some(variant) = variant else { return };
    let name = scope.text(variant);
    if name.is_empty() {
        return;
    }
    if !agents.values().any(|agent| agent.variants.contains_key(&name)) {
        let known: BTreeSet<&str> =
            agents.values().flat_map(|agent| agent.variants.keys()).map(String::as_str).collect();
        scope.unknown(Kind::Variant, variant, known);
    }
    for agent in agents.values_mut() {
        if let Some(chosen) = agent.in_variant(&name) {
            *agent = chosen;
        }
    }
}

impl KnownNames<'_> {
    fn read_markdown(
        &self,
        name: &AgentName,
        file: &Text,
        beside: &Agent,
        scope: &mut Resolver<'_>,
    ) -> Option<AgentSettings> {
        if *beside != (Agent { file: beside.file.clone(), ..Agent::default() }) {
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
        let read = markdown::agent(&inner.source).map_err(|error| scope.absorb_error(&error, file.place()));
        let (agent, instructions) = read.ok()?;
        for text in agent.file.iter().chain(&agent.instructions) {
            let fault = Fault::new("`file` and `instructions` are not allowed in front matter");
            inner.fault(fault.with_remedy("the text below the front matter is the instructions"), text.place());
        }
        let settings = self.agent(name, &agent, instructions, Location::FIRST, &mut inner);
        scope.absorb(inner);
        Some(settings)
    }

    fn agent(
        &self,
        name: &AgentName,
        written: &Agent,
        instructions: String,
        place: Option<Location>,
        scope: &mut Resolver<'_>,
    ) -> AgentSettings {
        let base = AgentSettings {
            name: name.clone(),
            aliases: Vec::new(),
            variants: BTreeMap::new(),
            model: self.model(name, written.model.as_ref(), place, scope),
            fallback: Vec::new(),
            selectable_models: Vec::new(),
            cooldown_s: DEFAULT_COOLDOWN_S,
            backoff: Backoff::default(),
            instructions: String::new(),
            preset: String::new(),
            working_directory: None,
            project: String::new(),
            servers: Vec::new(),
            tools: ToolFilter::default(),
            priorities: Vec::new(),
            rules: RunRules::default(),
            policy: policies::of_agent(name, None, self.policies, scope),
            modes: Vec::new(),
            expire_after_s: None,
            restart_on: [Restart::WorkingDirectory].into(),
            hide_unapproved: false,
            run_instructions: false,
            external_tools: Vec::new(),
            limits: Limits::default(),
        };
        let agent = self.with(&base, base.model.clone(), written, Some(instructions), place, scope);
        let mut variants = BTreeMap::new();
        for (variant, written) in written.variants.iter().flatten() {
            let (place, written) = (written.place(), written.value());
            scope.name("a variant", variant, place);
            if written.file.is_some() || written.aliases.is_some() || written.variants.is_some() {
                let fault = Fault::new("a variant has no `file`, `aliases` or `variants`");
                scope.fault(fault.with_remedy("write them at the agent"), place);
            }
            // Text for a model: anything that looks like a variable is meant literally.
            let instructions = written.instructions.as_ref().map(|text| text.value().trim_end().to_owned());
            let model = written.model.as_ref().map(|model| self.named_model(model, scope));
            let model = model.unwrap_or_else(|| agent.model.clone());
            let mut made = self.with(&agent, model, written, instructions, place, scope);
            if matches!(written.policy.as_ref().map(Located::value), Some(PolicyChoice::Here(_))) {
                // Runs keep the name of their policy; the name of the agent is that of the agent's own.
                Arc::make_mut(&mut made.policy).name = format!("{name}/{variant}");
            }
            variants.insert(variant.clone(), made);
        }
        AgentSettings { variants, ..agent }
    }

    /// The agent with this model and with the written settings in place of its own.
    fn with(
        &self,
        base: &AgentSettings,
        model: ModelName,
        written: &Agent,
        instructions: Option<String>,
        place: Option<Location>,
        scope: &mut Resolver<'_>,
    ) -> AgentSettings {
        let name = &base.name;
        let is_generative = |model: &ModelName| self.models.get(model).is_some_and(is_generative);
        if is_generative(&model) != is_generative(&base.model) {
            let fault = Fault::new(format!("model `{model}` is not of the same kind as the model of agent `{name}`"));
            scope.fault(fault.with_remedy("a variant replaces a chat model by a chat model"), place);
        }
        let text_place = written.instructions.as_ref().map_or(place, Located::place);
        if is_generative(&model) {
            generative::check(name, written, instructions.as_deref().unwrap_or_default(), text_place, scope);
        }
        if let Some(text) = &instructions {
            prompt::check_variables(name, text, text_place, scope);
        }
        let fallback = written.fallback.as_ref();
        if fallback.is_none() && base.fallback.iter().any(|candidate| candidate.model == model) {
            let fault = Fault::new(format!("model `{model}` cannot be its own fallback"));
            scope.fault(fault.with_remedy("set `fallback` as well"), place);
        }
        let (working_directory, project) = project::of_agent(base, written, scope);
        let (expire_after_s, restart_on) = sessions::of_agent(base, written.sessions.as_ref(), scope);
        let base = base.clone();
        let names = |names: &Vec<Text>, scope: &mut Resolver<'_>| names.iter().map(|name| scope.text(name)).collect();
        let aliases: Option<Vec<String>> = written.aliases.as_ref().map(|aliases| names(aliases, scope));
        for alias in aliases.iter().flatten() {
            scope.name("an agent", alias, place);
        }
        let priorities = written.priorities.as_ref().map(|priorities| {
            let priorities = priorities.0.iter();
            priorities.map(|(pattern, at)| (scope.pattern(pattern, at.place()), *at.value())).collect()
        });
        let fallback = fallback.map_or(base.fallback, |fallback| self.fallback(&model, fallback, scope));
        let models = written.models.as_ref();
        let mut selectable_models = models.map_or(base.selectable_models, |all| self.selectable(&model, all, scope));
        // The models that a run may choose in any case.
        selectable_models.retain(|name| *name != model && !fallback.iter().any(|candidate| candidate.model == *name));
        AgentSettings {
            name: base.name,
            aliases: aliases.map_or(base.aliases, |aliases| aliases.into_iter().map(AgentName::from).collect()),
            variants: base.variants,
            selectable_models,
            fallback,
            model,
            cooldown_s: written.cooldown_s.unwrap_or(base.cooldown_s),
            backoff: written.backoff.as_ref().map_or(base.backoff, |backoff| resolve_backoff(backoff, scope)),
            instructions: instructions.unwrap_or(base.instructions),
            preset: written.instructions_preset.as_ref().map_or(base.preset, |name| project::preset(name, scope)),
            working_directory,
            project,
            servers: written
                .servers
                .as_ref()
                .map_or(base.servers, |servers| servers.iter().filter_map(|id| self.server(id, scope)).collect()),
            tools: written.tools.as_ref().map_or(base.tools, |tools| filter(tools, scope)),
            priorities: priorities.unwrap_or(base.priorities),
            rules: self.rules(name, written, base.rules, scope),
            policy: match &written.policy {
                Some(policy) => policies::of_agent(name, Some(policy), self.policies, scope),
                None => base.policy,
            },
            modes: match &written.modes {
                Some(modes) => modes.iter().filter_map(|mode| policies::named(mode, self.policies, scope)).collect(),
                None => base.modes,
            },
            expire_after_s,
            restart_on,
            hide_unapproved: written.hide_unapproved.unwrap_or(base.hide_unapproved),
            run_instructions: written.run_instructions.unwrap_or(base.run_instructions),
            external_tools: match &written.external_tools {
                Some(tools) => external::tools(tools, scope),
                None => base.external_tools,
            },
            limits: match &written.limits {
                Some(limits) => bounds(limits, &base.limits, scope),
                None => base.limits,
            },
        }
    }

    /// The written rules, and those of `base` for what is not written.
    fn rules(&self, agent: &AgentName, written: &Agent, base: RunRules, scope: &mut Resolver<'_>) -> RunRules {
        let output_schema = match &written.output_schema {
            Some(schema) => {
                scope.remember(AdapterSetting::OutputSchema(agent.clone()), schema.place());
                output_schema(schema, scope)
            }
            None => base.output_schema,
        };
        RunRules {
            tiers: written.tiers.unwrap_or(base.tiers),
            ask_human: match &written.ask_human {
                Some(choice) => ask_human(choice.value(), scope),
                None => base.ask_human,
            },
            on_deny: written.on_deny.unwrap_or(base.on_deny),
            on_tool_error: written.on_tool_error.unwrap_or(base.on_tool_error),
            on_unknown_outcome: written.on_unknown_outcome.unwrap_or(base.on_unknown_outcome),
            compensate: written.compensate.unwrap_or(base.compensate),
            finish_with: match &written.finish_with {
                Some(names) => stop_conditions::finish_with(names, output_schema.as_ref(), scope),
                None => base.finish_with,
            },
            stop_when: match &written.stop_when {
                Some(condition) => stop_conditions::stop_when(agent, condition, scope),
                None => base.stop_when,
            },
            on_exceed: written.on_exceed.unwrap_or(base.on_exceed),
            output_schema,
            validate_output: base.validate_output,
            compaction: match &written.compaction {
                Some(compaction) => Some(self.compaction(compaction, base.compaction.as_ref(), scope)),
                None => base.compaction,
            },
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

    /// The models that a run may choose, which are of the same kind as the agent's own.
    fn selectable(&self, model: &ModelName, written: &[Text], scope: &mut Resolver<'_>) -> Vec<ModelName> {
        let is_generative = |model: &ModelName| self.models.get(model).is_some_and(is_generative);
        let mut models: Vec<ModelName> = Vec::new();
        for text in written {
            let name = self.named_model(text, scope);
            if is_generative(&name) != is_generative(model) {
                let fault =
                    Fault::new(format!("model `{name}` is not of the same kind as model `{model}` of the agent"));
                scope.fault(fault.with_remedy("name chat models for an agent with a chat model"), text.place());
            }
            if !models.contains(&name) {
                models.push(name);
            }
        }
        models
    }

    fn compaction(
        &self,
        written: &Located<WrittenCompaction>,
        base: Option<&Compaction>,
        scope: &mut Resolver<'_>,
    ) -> Compaction {
        let base = base.cloned().unwrap_or_default();
        let (place, written) = (written.place(), written.value());
        let at_tokens = written.at_tokens.as_ref().map(|tokens| scope.at_least_one(Some(tokens), 1)).or(base.at_tokens);
        let keep_tokens = written.keep_tokens.as_ref().map(|tokens| *tokens.value());
        let keep_tokens = keep_tokens
            .unwrap_or_else(|| at_tokens.map_or(base.keep_tokens, |at_tokens| base.keep_tokens.min(at_tokens / 4)));
        if at_tokens.is_some_and(|at_tokens| keep_tokens >= at_tokens) {
            let fault = Fault::new("`keep_tokens` of a compaction is less than its `at_tokens`");
            scope.fault(fault.with_remedy("keep less, or compact later"), place);
        }
        let model = written.model.as_ref().map(|model| self.named_model(model, scope)).or(base.model);
        if let Some(name) = model.as_ref().filter(|name| self.models.get(*name).is_some_and(is_generative)) {
            let fault = Fault::new(format!("model `{name}` generates images and cannot write summaries"));
            scope.fault(fault.with_remedy("name a chat model"), place);
        }
        Compaction { at_tokens, keep_tokens, model }
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

fn resolve_backoff(written: &Located<WrittenBackoff>, scope: &mut Resolver<'_>) -> Backoff {
    let (place, written) = (written.place(), written.value());
    let grows = written.first_ms.is_some() || written.cap_ms.is_some() || written.factor.is_some();
    if let Some(every) = &written.every_ms {
        if grows {
            let fault = Fault::new("`every_ms` is a constant delay, and the other keys describe a growing one");
            scope.fault(fault.with_remedy("remove `every_ms`, or the other keys"), place);
        }
        return Backoff::Constant(Duration::from_millis(scope.at_least_one(Some(every), 1)));
    }
    let first = scope.at_least_one(written.first_ms.as_ref(), 500);
    let cap = scope.at_least_one(written.cap_ms.as_ref(), first.max(8000));
    if cap < first {
        let fault = Fault::new("`cap_ms` of a backoff is less than its `first_ms`");
        scope.fault(fault.with_remedy("wait less at first, or longer at most"), place);
    }
    let factor = scope.at_least_one(written.factor.as_ref(), 2);
    Backoff::Exponential { first: Duration::from_millis(first), cap: Duration::from_millis(cap), factor }
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
            yaml::parse(&source).map_err(|error| scope.absorb_error(&error, written.place())).ok()
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

/// The written limits, and those of `default` where none is written.
fn bounds(written: &WrittenLimits, default: &Limits, scope: &mut Resolver<'_>) -> Limits {
    Limits {
        max_tool_interactions: written.max_tool_interactions.unwrap_or(default.max_tool_interactions),
        max_iterations: scope.at_least_one(written.max_iterations.as_ref(), default.max_iterations),
        max_mcp_calls: written.max_mcp_calls.or(default.max_mcp_calls),
        max_tokens: written.max_tokens.or(default.max_tokens),
        max_cost_usd: written.max_cost_usd.or(default.max_cost_usd),
        deadline_s: written.deadline_s.or(default.deadline_s),
        max_corrections: written.max_corrections.unwrap_or(default.max_corrections),
        max_attempts: scope.at_least_one(written.max_attempts.as_ref(), default.max_attempts),
        max_result_bytes: written
            .max_result_bytes
            .as_ref()
            .map_or(default.max_result_bytes, |bytes| scope.result_bytes(bytes)),
    }
}
