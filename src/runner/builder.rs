//! Builder of a runner. Only a store is required; every other port has a safe default. Arguments, results and answers
//! are validated against their JSON Schemas unless the application calls [`Builder::without_validation`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use toolgate_core::id::{AgentName, GrantId, ModelName, NodeId, RunId, ServerId};
use toolgate_core::policy::Links;
use toolgate_core::redact::{Secrets, SecretsBuilder, Style};
use toolgate_core::run::{Budget, OutputVerdict, Spec, ToolGrant};
use toolgate_core::tool::{DeliveredReply, FailureKind, LeftOut, Outcome, Progress, ServerTools, Tool};
use toolgate_core::trace::{SpanContext, TraceId};
use toolgate_driver::{ElicitationHold, Ports, ServerResults, Store};
use toolgate_ports::{
    ApprovalCache, BlobStore, Clock, ContextBuilder, EventSink, Governor, Grant, GrantContext, GrantFilter,
    GuardedTool, Ids, InputFindings, McpCall, McpServers, OutputValidator, PathResolver, Revoked, RuleCounters,
    RunStore, StoreError, ToolInputValidator,
};
use toolgate_validation::SchemaValidator;

use super::admission::Admission;
use super::context::Transcript;
use super::registry::ActiveRuns;
use super::run_servers::Injections;
use super::shutdown::Drain;
use super::system::{SystemClock, UuidIds};
use super::watch::{Broadcaster, Poller};
use super::{Agent, AgentRunner, Capacity, Inner, RunnerError};

/// How many stored results are read at a time.
const READS_AT_ONCE: usize = 1;

/// Collects ports and agents.
#[derive(Default)]
pub struct Builder {
    pub(super) store: Option<Arc<dyn RunStore>>,
    pub(super) blobs: Option<Arc<dyn BlobStore>>,
    pub(super) results: BTreeMap<ServerId, ServerResults>,
    pub(super) hold: ElicitationHold,
    pub(super) servers: Option<Arc<dyn McpServers>>,
    pub(super) approvals: Option<Arc<dyn ApprovalCache>>,
    pub(super) inputs: Option<Arc<dyn ToolInputValidator>>,
    pub(super) outputs: Option<Arc<dyn OutputValidator>>,
    pub(super) paths: Option<Arc<dyn PathResolver>>,
    pub(super) context: Option<Arc<dyn ContextBuilder>>,
    pub(super) governor: Option<Arc<dyn Governor>>,
    pub(super) rule_counters: Option<Arc<dyn RuleCounters>>,
    pub(super) sinks: Vec<Arc<dyn EventSink>>,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) ids: Option<Arc<dyn Ids>>,
    pub(super) node: Option<NodeId>,
    pub(super) lease: Option<Duration>,
    pub(super) exports_spans: bool,
    pub(super) poll: Option<Duration>,
    pub(super) agents: Vec<Agent>,
    pub(super) sampler: Option<Sampler>,
    pub(super) secrets: Option<Secrets>,
    pub(super) capacity: Option<Capacity>,
    pub(super) envelopes: Option<Arc<super::envelope::EnvelopeKeys>>,
}

/// Decides whether the spans of a trace are recorded. The second argument is the caller's decision, if it made one.
pub type Sampler = Arc<dyn Fn(&TraceId, Option<bool>) -> bool + Send + Sync>;

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $port:ident;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: Arc<dyn $port>) -> Self {
            self.$name = Some($name);
            self
        })*
    };
}

impl Builder {
    setters! {
        /// The store of journals. Required.
        store: RunStore;
        /// The store of media and large results; default: the store of journals if it stores blobs as well. Without a
        /// blob store, media stay in the journal, and large results keep only their beginning and end.
        blobs: BlobStore;
        /// MCP servers; without them the only tools are external ones.
        servers: McpServers;
        /// Grants; without this cache every guarded call requires approval.
        approvals: ApprovalCache;
        /// The validator of arguments and results; default: JSON Schema.
        inputs: ToolInputValidator;
        /// The validator of final answers; default: JSON Schema.
        outputs: OutputValidator;
        /// Resolves symbolic links in paths, for policies with conditions on link targets; without it such calls
        /// require approval.
        paths: PathResolver;
        /// Builds the context of the model; default: the unchanged transcript.
        context: ContextBuilder;
        /// The governor of model calls; without one, calls are limited by the limits of their run alone.
        governor: Governor;
        /// The store of what rules with a limit allowed; without it, calls that such a rule allows require approval.
        rule_counters: RuleCounters;
        /// The clock; default: the system's.
        clock: Clock;
        /// The source of new ids; default: UUIDv7.
        ids: Ids;
    }

    /// Accepts every argument object, result and answer, whatever its schema.
    #[must_use]
    pub fn without_validation(self) -> Self {
        self.inputs(Arc::new(NoPort)).outputs(Arc::new(NoPort))
    }

    /// How results of one server are handled; default: limited as configured for the run, validated with a warning.
    #[must_use]
    pub fn server_results(mut self, server: impl Into<ServerId>, results: ServerResults) -> Self {
        self.results.insert(server.into(), results);
        self
    }

    /// How long calls stay open while their servers wait for answers; default: not at all. Set it where answers can
    /// arrive while a run is active.
    #[must_use]
    pub fn elicitation_hold(mut self, hold: ElicitationHold) -> Self {
        self.hold = hold;
        self
    }

    /// Adds a sink for events of every run that this process executes.
    #[must_use]
    pub fn sink(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// Adds an agent.
    #[must_use]
    pub fn agent(mut self, agent: Agent) -> Self {
        self.agents.push(agent);
        self
    }

    /// The node name under which this process owns runs; default: a generated one.
    #[must_use]
    pub fn node(mut self, node: NodeId) -> Self {
        self.node = Some(node);
        self
    }

    /// The duration of a lease without renewal (default 15 s). After that other processes can claim the run of a dead
    /// process.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Marks new runs, because a sink of this process exports their spans; default: no marks.
    #[must_use]
    pub fn exports_spans(mut self, exports: bool) -> Self {
        self.exports_spans = exports;
        self
    }

    /// Which traces are recorded; default: the caller's decision, or else all.
    #[must_use]
    pub fn sampler(mut self, sampler: Sampler) -> Self {
        self.sampler = Some(sampler);
        self
    }

    /// How often a running step checks whether another process ended the run (default 500 ms).
    #[must_use]
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = Some(poll);
        self
    }

    /// The limits of active and queued runs (default: no limit).
    #[must_use]
    pub fn capacity(mut self, capacity: Capacity) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// The envelope keys, for callers that keep the state of their runs themselves; without them no run can be
    /// exported.
    #[must_use]
    pub fn envelope_keys(mut self, keys: super::envelope::EnvelopeKeys) -> Self {
        self.envelopes = Some(Arc::new(keys));
        self
    }

    /// The known secrets (default: none). A known secret in a prompt, a result or a reply is replaced before it is
    /// journaled.
    #[must_use]
    pub fn secrets(mut self, secrets: SecretsBuilder) -> Self {
        self.secrets = Some(secrets.build(Style { pieces: false, ..Style::MESSAGE }));
        self
    }

    /// Builds the runner. Fails without a store, if two agents have the same name, and if an agent names a model twice.
    pub fn build(self) -> Result<AgentRunner, RunnerError> {
        let store = self.store.ok_or(RunnerError::Incomplete("a store is required: Builder::store"))?;
        let agents = named(self.agents)?;
        let ids = self.ids.unwrap_or_else(|| Arc::new(UuidIds));
        let node = self.node.unwrap_or_else(|| NodeId::from(format!("node_{}", ids.trace_id())));
        let broadcaster = Arc::<Broadcaster>::default();
        let poller = Arc::new(Poller::new(broadcaster.clone(), node.clone()));
        let mut sinks = self.sinks;
        sinks.push(broadcaster.clone());
        let nothing = Arc::new(NoPort);
        let schemas = Arc::new(SchemaValidator::new());
        let ports = Ports {
            blobs: self.blobs.or_else(|| store.clone().blobs()),
            results: self.results.into(),
            hold: self.hold.into(),
            store: Store {
                runs: store,
                node,
                lease: self.lease.unwrap_or(Duration::from_secs(15)),
                exports_spans: self.exports_spans,
                secrets: self.secrets.unwrap_or_default(),
                segments: Default::default(),
            },
            servers: self.servers.unwrap_or_else(|| nothing.clone()),
            toolsets: Arc::default(),
            approvals: self.approvals.unwrap_or_else(|| nothing.clone()),
            inputs: self.inputs.unwrap_or_else(|| schemas.clone()),
            outputs: self.outputs.unwrap_or(schemas),
            paths: self.paths.unwrap_or(nothing),
            context: self.context.unwrap_or_else(|| Arc::new(Transcript)),
            governor: self.governor,
            rule_counters: self.rule_counters,
            sinks: sinks.into(),
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock)),
            poll: self.poll.unwrap_or(Duration::from_millis(500)),
            reads: Arc::new(Semaphore::new(READS_AT_ONCE)),
        };
        let sampler = self.sampler.unwrap_or_else(|| Arc::new(|_, parent| parent.unwrap_or(true)));
        let inner = Inner {
            ports,
            ids,
            sampler,
            agents,
            broadcaster,
            poller,
            active_runs: Arc::new(ActiveRuns::default()),
            injections: Arc::new(Injections::default()),
            blocked: Arc::default(),
            admission: Arc::new(Admission::new(self.capacity.unwrap_or_default())),
            drain: Arc::new(Drain::default()),
            envelopes: self.envelopes,
            tasks: TaskTracker::new(),
        };
        let runner = AgentRunner { inner: Arc::new(inner) };
        Ok(runner)
    }
}

/// The agents by their names and aliases.
pub(super) fn named(agents: Vec<Agent>) -> Result<BTreeMap<AgentName, Arc<Agent>>, RunnerError> {
    let mut named = BTreeMap::new();
    for agent in agents {
        if let Some(model) = model_named_twice(&agent) {
            return Err(RunnerError::ModelTwice { agent: agent.name, model });
        }
        let agent = Arc::new(agent);
        for name in [&agent.name].into_iter().chain(&agent.aliases) {
            if named.insert(name.clone(), agent.clone()).is_some() {
                return Err(RunnerError::Incomplete("two agents have the same name"));
            }
        }
    }
    Ok(named)
}

fn model_named_twice(agent: &Agent) -> Option<ModelName> {
    let mut names = BTreeSet::new();
    agent.models().map(|(name, _)| name).find(|name| !names.insert(*name)).cloned()
}

const WITHOUT_SERVERS: &str = "this runner was built without MCP servers";

/// The default of ports that were not set.
struct NoPort;

#[async_trait]
impl McpServers for NoPort {
    async fn list(&self, servers: &[ServerId], _trace: &SpanContext) -> Vec<ServerTools> {
        let missing = |server: &ServerId| ServerTools {
            server: server.clone(),
            trusted: false,
            endpoint: None,
            tools: Arc::default(),
            left_out: vec![LeftOut { server: Some(server.clone()), tool: None, reason: WITHOUT_SERVERS.into() }],
            stale: None,
            authorization: None,
        };
        servers.iter().map(missing).collect()
    }

    async fn call(&self, _call: McpCall<'_>, _progress: &(dyn Fn(Progress) + Send + Sync)) -> DeliveredReply {
        Outcome::failed(FailureKind::Unavailable, WITHOUT_SERVERS).into()
    }

    async fn release(&self, _run: &RunId, _trace: &SpanContext) {}
}

#[async_trait]
impl ApprovalCache for NoPort {
    async fn granted(&self, _: &GrantContext, _: &[GuardedTool], _: Timestamp) -> Result<Vec<ToolGrant>, StoreError> {
        Ok(Vec::new())
    }

    async fn hold(&self, grants: &[GrantId], _: Timestamp) -> Result<Vec<bool>, StoreError> {
        Ok(vec![false; grants.len()])
    }

    async fn grant(&self, _: &Grant) -> Result<(), StoreError> {
        Ok(())
    }

    async fn grants(&self, _: &GrantFilter, _: Timestamp) -> Result<Vec<Grant>, StoreError> {
        Ok(Vec::new())
    }

    async fn revoke(&self, _: &GrantId, _: &Revoked) -> Result<Option<Grant>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl ToolInputValidator for NoPort {
    fn accepts(&self, _tool: &Tool) -> Result<(), String> {
        Ok(())
    }

    async fn check(&self, _tool: &Tool, _arguments: &Map<String, Value>, _budget: &Budget) -> InputFindings {
        InputFindings::Valid
    }

    async fn check_result(&self, _tool: &Tool, _result: &Value) -> InputFindings {
        InputFindings::Valid
    }

    async fn check_form(&self, _schema: &Value, _form: &Value) -> InputFindings {
        InputFindings::Valid
    }
}

#[async_trait]
impl PathResolver for NoPort {
    async fn resolve(&self, _server: &ServerId, _paths: &[String]) -> Links {
        Links::Unresolvable("this runner was built without a resolver of paths".to_owned())
    }
}

#[async_trait]
impl OutputValidator for NoPort {
    fn takes_schema(&self, _schema: &Value) -> Result<(), String> {
        Ok(())
    }

    async fn check(&self, _spec: &Spec, _answer: &str, _budget: &Budget) -> OutputVerdict {
        OutputVerdict::Valid { value: None }
    }
}
