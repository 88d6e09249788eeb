//! Helpers for envelope scenarios: one agent, and nodes with their own or a shared store.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Event, Status};
use toolgate::core::tool::ExternalTool;
use toolgate::runner::envelope::{Envelope, EnvelopeError, EnvelopeKey, EnvelopeKeys};
use toolgate::runner::{Agent, AgentRunner, Report, Request, Resume, RunnerError};
use toolgate::stores::MemoryStore;

use super::super::world::{Given, given_an_agent};
use crate::fakes::{FakeClock, FakeServers};

pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// A private key as `openssl genpkey -algorithm ed25519` prints it, and its public key.
pub(super) const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINIhF8ryd7neb75xMje1AlnuwVMjncsFk0UMcCdSHiqe
-----END PRIVATE KEY-----
";
pub(super) const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAFdXpkNon6S3+9VyyTiNmt7SSU+VDRNzOX0XoEm2urHc=
-----END PUBLIC KEY-----
";

/// Shared by all nodes: the agent, the servers, the time.
pub(super) struct World {
    agent: Agent,
    external: Vec<ExternalTool>,
    pub(super) servers: Arc<FakeServers>,
    clock: Arc<FakeClock>,
}

/// A node.
pub(super) struct Node {
    pub(super) runner: AgentRunner,
    pub(super) store: Arc<MemoryStore>,
}

/// An agent with an external tool and a guarded tool.
pub(super) fn a_clerk() -> Given {
    given_an_agent().with_tools("files", &["delete", "read"]).whose_policy_says(Verdict::Ask, "*_delete")
}

pub(super) fn order() -> ExternalTool {
    serde_json::from_value(serde_json::json!({"name": "order"})).unwrap()
}

impl World {
    pub(super) fn of(given: Given) -> Self {
        let servers = given.servers();
        Self { agent: given.agent(), external: vec![order()], servers, clock: Arc::new(FakeClock::new()) }
    }

    /// Adds an external tool.
    pub(super) fn with(mut self, tool: ExternalTool) -> Self {
        self.external = vec![tool];
        self
    }

    pub(super) fn node(&self, keys: EnvelopeKeys) -> Node {
        self.node_on(Arc::default(), keys)
    }

    /// A node that shares the store of another one.
    pub(super) fn node_on(&self, store: Arc<MemoryStore>, keys: EnvelopeKeys) -> Node {
        self.node_where(store, keys, |_| {})
    }

    pub(super) fn node_where(
        &self,
        store: Arc<MemoryStore>,
        keys: EnvelopeKeys,
        change: impl FnOnce(&mut Agent),
    ) -> Node {
        let mut agent = self.agent.clone();
        change(&mut agent);
        let builder = AgentRunner::builder().store(store.clone()).servers(self.servers.clone());
        let runner = builder.clock(self.clock.clone()).agent(agent).envelope_keys(keys).build().unwrap();
        Node { runner, store }
    }

    pub(super) fn request(&self) -> Request {
        let request = Request::new("clerk", "Hello");
        self.external.iter().cloned().fold(request, Request::external_tool)
    }

    /// Runs the agent on a node until the run is pending, and exports it.
    pub(super) async fn handed_out(&self, node: &Node) -> Envelope {
        let report = node.runner.execute(self.request()).await.unwrap();
        assert_eq!(report.status, Status::Pending, "{:?}", report.error);
        node.runner.export(&report.run_id).await.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let violations = self.servers.violations();
        assert!(std::thread::panicking() || violations.is_empty(), "the servers complain: {violations:?}");
    }
}

impl Node {
    pub(super) async fn resume(&self, envelope: &Envelope, resume: Resume) -> Report {
        self.runner.resume_from(envelope, resume).await.unwrap()
    }

    /// The error for an envelope.
    pub(super) async fn refusal(&self, envelope: &Envelope, resume: Resume) -> EnvelopeError {
        match self.runner.resume_from(envelope, resume).await {
            Err(RunnerError::Envelope(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    /// The events of a run; empty if this node has never stored it.
    pub(super) async fn facts(&self, envelope: &Envelope) -> Vec<Event> {
        let journal = toolgate::ports::RunStore::load(&*self.store, &envelope.run_id, 0).await.unwrap();
        journal.into_iter().map(|recorded| recorded.event).collect()
    }

    pub(super) async fn has_never_seen(&self, envelope: &Envelope) -> bool {
        self.facts(envelope).await.is_empty()
    }
}

pub(super) fn secret(name: &str) -> EnvelopeKey {
    EnvelopeKey::hmac(format!("{name}: a secret of more than enough bytes").as_bytes()).unwrap()
}

pub(super) fn ed25519(key: &str) -> EnvelopeKey {
    EnvelopeKey::ed25519(key, b"what hides the content, of more than enough bytes").unwrap()
}

/// Shared secrets with these names, of which the first signs.
pub(super) fn keys(names: &[&str]) -> EnvelopeKeys {
    EnvelopeKeys::new(names[0], names.iter().map(|name| ((*name).to_owned(), secret(name)))).unwrap()
}

/// The envelope after its way through text.
pub(super) fn sent(envelope: &Envelope) -> Envelope {
    Envelope::from_json(serde_json::to_string(envelope).unwrap().as_bytes()).unwrap()
}

/// The envelope with a change in its JSON.
pub(super) fn with(envelope: &Envelope, pointer: &str, value: Value) -> Envelope {
    let mut json = serde_json::to_value(envelope).unwrap();
    *json.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
    Envelope::from_json(json.to_string().as_bytes()).unwrap()
}
