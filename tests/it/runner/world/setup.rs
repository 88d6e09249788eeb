//! Setup of a world.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::policy::{Match, Policy, Rule, Verdict};
use toolgate::core::redact::SecretsBuilder;
use toolgate::core::run::Limits;
use toolgate::core::tool::ExternalTool;
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::{ContextBuilder, Governor, Model, OutputValidator, PathResolver, ToolInputValidator};
use toolgate::runner::{Agent, Builder, Capacity, Fallback, ServerResults};
use toolgate::validation::SchemaValidator;

use super::World;
use super::stores::{Kept, Place};
use crate::fakes::{
    CountingApprovals, FailingStore, FakeClock, FakeIds, FakeServers, JsonAnswers, RecordingSink, StrictInputs, tool,
};

/// A world under construction.
pub(crate) struct Given {
    agent: Agent,
    servers: Arc<FakeServers>,
    external: Vec<ExternalTool>,
    ports: Ports,
}

/// Ports that only some scenarios set.
#[derive(Clone, Default)]
pub(crate) struct Ports {
    inputs: Option<Arc<dyn ToolInputValidator>>,
    answers: Option<Arc<dyn OutputValidator>>,
    context: Option<Arc<dyn ContextBuilder>>,
    governor: Option<Arc<dyn Governor>>,
    paths: Option<Arc<dyn PathResolver>>,
    poll: Option<Duration>,
    capacity: Capacity,
    secret: Option<String>,
    results: Vec<(String, ServerResults)>,
}

/// An agent called `clerk` with a policy that allows everything and a model without turns.
pub(crate) fn given_an_agent() -> Given {
    let mute = Arc::new(ScriptedModel::new("scripted", Script::default()));
    let agent = Agent { policy: Arc::new(Policy::allow_always()), ..Agent::new("clerk", mute) };
    Given { agent, servers: Arc::default(), external: Vec::new(), ports: Ports::default() }
}

impl Given {
    /// Adds an MCP server with tools of these names.
    pub(crate) fn with_tools(self, server: &str, names: &[&str]) -> Self {
        names.iter().for_each(|name| self.servers.tool_access(server, tool(name)));
        self.with_server(server)
    }

    fn with_server(mut self, server: &str) -> Self {
        if !self.agent.servers.contains(&server.into()) {
            self.agent.servers.push(server.into());
        }
        self
    }

    /// Adds an idempotent tool of a trusted server.
    pub(crate) fn with_a_harmless_tool(self, server: &str, name: &str) -> Self {
        self.servers.offer_harmless(server, name);
        self.with_server(server)
    }

    /// Configures the behavior of the servers.
    pub(crate) fn where_servers(self, told: impl FnOnce(&FakeServers)) -> Self {
        told(&self.servers);
        self
    }

    /// Adds an external tool.
    pub(crate) fn with_an_external_tool(self, name: &str) -> Self {
        let value = json!({"name": name});
        self.with_external(value)
    }

    pub(crate) fn with_external(mut self, declaration: Value) -> Self {
        self.external.push(serde_json::from_value(declaration).unwrap());
        self
    }

    /// The turns of the model.
    pub(crate) fn whose_model_says(mut self, turns: Value) -> Self {
        let script = Script::from_json(&json!({"turns": turns}).to_string()).unwrap();
        self.agent.model = Arc::new(ScriptedModel::new("scripted", script));
        self
    }

    /// Adds a fallback model with these turns.
    pub(crate) fn with_a_fallback(mut self, name: &str, turns: Value) -> Self {
        let script = Script::from_json(&json!({"turns": turns}).to_string()).unwrap();
        let model = Arc::new(ScriptedModel::new(name, script));
        self.agent.fallback.push(Fallback { model_name: name.into(), model, attempts: None });
        self
    }

    pub(crate) fn with_the_model(mut self, model: impl Model + 'static) -> Self {
        self.agent.model = Arc::new(model);
        self
    }

    /// Adds a policy rule for the tools whose names match.
    pub(crate) fn whose_policy_says(mut self, verdict: Verdict, tools: &str) -> Self {
        let matches = Match { tool: Some(tools.into()), ..Match::default() };
        let rule = Rule::new(tools, verdict, "because it matters", matches, Vec::new(), Vec::new()).unwrap();
        Arc::make_mut(&mut self.agent.policy).rules.push(rule);
        self
    }

    pub(crate) fn within(mut self, limits: Limits) -> Self {
        self.agent.limits = limits;
        self
    }

    /// Changes the agent in any other way.
    pub(crate) fn that(mut self, change: impl FnOnce(&mut Agent)) -> Self {
        change(&mut self.agent);
        self
    }

    pub(crate) fn that_checks_arguments(mut self) -> Self {
        self.ports.inputs = Some(Arc::new(StrictInputs));
        self
    }

    /// Validates arguments, results and answers as the program does.
    pub(crate) fn that_checks_by_schema(mut self) -> Self {
        self.ports.inputs = Some(Arc::new(SchemaValidator::new()));
        self.with_the_answers_checked_by(Arc::new(SchemaValidator::new()))
    }

    /// Requires answers to be JSON.
    pub(crate) fn that_checks_answers(mut self) -> Self {
        self.agent.rules.validate_output = true;
        self.with_the_answers_checked_by(Arc::new(JsonAnswers))
    }

    pub(crate) fn with_the_arguments_checked_by(mut self, inputs: Arc<dyn ToolInputValidator>) -> Self {
        self.ports.inputs = Some(inputs);
        self
    }

    pub(crate) fn with_the_answers_checked_by(mut self, answers: Arc<dyn OutputValidator>) -> Self {
        self.ports.answers = Some(answers);
        self
    }

    pub(crate) fn with_the_context(mut self, context: Arc<dyn ContextBuilder>) -> Self {
        self.ports.context = Some(context);
        self
    }

    pub(crate) fn with_the_governor(mut self, governor: Arc<dyn Governor>) -> Self {
        self.ports.governor = Some(governor);
        self
    }

    pub(crate) fn with_the_paths_resolved_by(mut self, paths: Arc<dyn PathResolver>) -> Self {
        self.ports.paths = Some(paths);
        self
    }

    /// How the results of a server are handled.
    pub(crate) fn with_the_results_of(mut self, server: &str, results: ServerResults) -> Self {
        self.ports.results.push((server.into(), results));
        self
    }

    /// Makes a text a known secret of the process.
    pub(crate) fn that_knows_the_secret(mut self, secret: &str) -> Self {
        self.ports.secret = Some(secret.into());
        self
    }

    pub(crate) fn that_polls_every(mut self, poll: Duration) -> Self {
        self.ports.poll = Some(poll);
        self
    }

    /// Limits the number of active runs.
    pub(crate) fn at_most(mut self, runs: usize) -> Self {
        self.ports.capacity.driven = runs;
        self
    }

    /// Only the agent, for another kind of world.
    pub(crate) fn agent(self) -> Agent {
        self.agent
    }

    /// Only the servers.
    pub(crate) fn servers(&self) -> Arc<FakeServers> {
        self.servers.clone()
    }

    /// Another world on the same store.
    pub(crate) async fn sharing(self, other: &World) -> World {
        self.on(other.kept.clone(), other.ids.clone()).await
    }

    /// The world with its journals in memory.
    pub(crate) async fn ready(self) -> World {
        self.kept(Kept::InMemory).await
    }

    /// The world with its journals in that kind of store.
    pub(crate) async fn kept(self, kept: Kept) -> World {
        self.on(Arc::new(kept.open().await), Arc::default()).await
    }

    async fn on(self, kept: Arc<Place>, ids: Arc<FakeIds>) -> World {
        let store = Arc::new(FailingStore::around(kept.store()));
        let mut world = World {
            servers: self.servers,
            approvals: Arc::new(CountingApprovals::default()),
            store: store.clone(),
            clock: Arc::new(FakeClock::new()),
            sink: Arc::new(RecordingSink::default()),
            runner: toolgate::runner::AgentRunner::builder().store(store.clone()).build().unwrap(),
            external: self.external,
            agent: self.agent,
            given: self.ports,
            ids,
            kept,
            processes: Cell::new(0),
        };
        world.runner = world.process(store, world.agent.clone());
        world
    }
}

impl Ports {
    pub(crate) fn add_to(&self, mut builder: Builder) -> Builder {
        if let Some(inputs) = &self.inputs {
            builder = builder.inputs(inputs.clone());
        }
        if let Some(answers) = &self.answers {
            builder = builder.outputs(answers.clone());
        }
        if let Some(context) = &self.context {
            builder = builder.context(context.clone());
        }
        if let Some(governor) = &self.governor {
            builder = builder.governor(governor.clone());
        }
        if let Some(paths) = &self.paths {
            builder = builder.paths(paths.clone());
        }
        for (server, results) in &self.results {
            builder = builder.server_results(server.as_str(), *results);
        }
        if let Some(secret) = &self.secret {
            builder = builder.secrets(SecretsBuilder::of_values([secret.as_str()]));
        }
        let builder = builder.capacity(self.capacity);
        match self.poll {
            Some(poll) => builder.poll(poll),
            None => builder,
        }
    }
}
