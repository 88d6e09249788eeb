//! Helpers for runner scenarios: configure an agent, script its model, and inspect the outcome.

mod inspection;
mod setup;
mod stores;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolgate::core::id::{NodeId, RunId};
use toolgate::core::run::{Decision, DecisionKind, Input, Scope};
use toolgate::core::tool::{Arguments, ExternalTool};
use toolgate::ports::{FileStore, RunStore, UsageCounters, Webhooks};
use toolgate::runner::{Agent, AgentRunner, Answer, Execution, Report, Request, Resume, RunnerError};

pub(crate) use inspection::{answer_to, names, said, say};
pub(crate) use setup::{Given, given_an_agent};
pub(crate) use stores::{Kept, on_every_store};

use crate::fakes::{CountingApprovals, FailingStore, FakeClock, FakeIds, FakeServers, RecordingSink};

/// The lease duration in these tests.
pub(crate) const LEASE: Duration = Duration::from_millis(400);

/// A world: servers and a store that outlive processes, and a first process that runs the agent.
pub(crate) struct World {
    pub(crate) servers: Arc<FakeServers>,
    pub(crate) approvals: Arc<CountingApprovals>,
    pub(crate) store: Arc<FailingStore>,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) sink: Arc<RecordingSink>,
    pub(crate) runner: AgentRunner,
    pub(crate) external: Vec<ExternalTool>,
    agent: Agent,
    given: setup::Ports,
    ids: Arc<FakeIds>,
    kept: Arc<stores::Place>,
    processes: std::cell::Cell<u32>,
}

impl World {
    /// A request of the application with its external tools.
    pub(crate) fn request(&self) -> Request {
        let request = Request::new("clerk", "Hello");
        self.external.iter().cloned().fold(request, Request::external_tool)
    }

    /// Runs the agent until the run is idle.
    pub(crate) async fn run(&self) -> Report {
        self.runner.execute(self.request()).await.unwrap()
    }

    pub(crate) async fn start(&self) -> Execution {
        self.runner.start(self.request()).await.unwrap()
    }

    pub(crate) async fn resume(&self, run: &RunId, resume: Resume) -> Result<Report, RunnerError> {
        // A resume that hangs is a failure and must not block the tests.
        let resumed = tokio::time::timeout(Duration::from_secs(60), self.runner.resume(run, resume));
        resumed.await.expect("the resume comes to rest")
    }

    /// Another process with the same agent on the same store.
    pub(crate) async fn another_process(&self) -> AgentRunner {
        self.another_process_where(|_| {}).await
    }

    /// Another process with a slightly different agent.
    pub(crate) async fn another_process_where(&self, change: impl FnOnce(&mut Agent)) -> AgentRunner {
        let mut agent = self.agent.clone();
        change(&mut agent);
        self.process(self.kept.open_again().await, agent)
    }

    /// The uploaded files in the store.
    pub(crate) fn files(&self) -> Arc<dyn FileStore> {
        self.kept.files()
    }

    /// The usage that the store counts for quotas.
    pub(crate) fn usage(&self) -> Arc<dyn UsageCounters> {
        self.kept.usage()
    }

    /// The webhooks in the store.
    pub(crate) fn webhooks(&self) -> Arc<dyn Webhooks> {
        self.kept.webhooks()
    }

    fn process(&self, store: Arc<dyn RunStore>, agent: Agent) -> AgentRunner {
        let number = self.processes.get() + 1;
        self.processes.set(number);
        let builder = AgentRunner::builder()
            .store(store)
            .servers(self.servers.clone())
            .approvals(self.approvals.clone())
            .clock(self.clock.clone())
            .ids(self.ids.clone())
            .node(NodeId::from(format!("process_{number}")))
            .lease(LEASE)
            .sink(self.sink.clone())
            .agent(agent);
        self.given.add_to(builder).build().unwrap()
    }

    /// The names of a run's events.
    pub(crate) async fn journal(&self, run: &RunId) -> Vec<&'static str> {
        names(&self.runner.journal(run).await.unwrap())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let violations = self.servers.violations();
        assert!(std::thread::panicking() || violations.is_empty(), "the servers complain: {violations:?}");
    }
}

/// An input without content, which only resumes the run.
pub(crate) fn nothing() -> Input {
    Input::Resume(Resume::default())
}

/// The application's results for these calls.
pub(crate) fn results<const N: usize>(results: [(&str, Value); N]) -> Resume {
    results.into_iter().map(|(call, value)| (call, Answer::output(value))).collect()
}

/// Decisions about these calls.
pub(crate) fn decisions<const N: usize>(decisions: [(&str, Decision); N]) -> Resume {
    decisions.into_iter().collect()
}

pub(crate) fn yes() -> Decision {
    Decision::new(DecisionKind::Approve, "ann")
}

pub(crate) fn yes_for_the_session() -> Decision {
    Decision { scope: Scope::Session, ..yes() }
}

pub(crate) fn yes_but_with(arguments: Value) -> Decision {
    Decision { edited_arguments: Some(Arguments::from_value(arguments)), ..yes() }
}

pub(crate) fn no(reason: &str) -> Decision {
    Decision { answer: DecisionKind::Deny, reason: Some(reason.into()), ..yes() }
}
