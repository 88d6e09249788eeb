//! RunServers MCP servers: servers that a host application adds to one run, as code in this process or as connections
//! that only this run has. The journal contains only their names, so a process that resumes the run must inject them
//! again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{join, join_all};
use jiff::Timestamp;
use toolgate_core::id::{RunId, ServerId};
use toolgate_core::tool::{DeliveredReply, Progress, ServerTools};
use toolgate_core::trace::SpanContext;
use toolgate_driver::{Journal, Ports};
use toolgate_ports::{McpCall, McpServers, McpTask};

use super::{AgentRunner, RunnerError};

/// Servers in addition to the configured ones, by their ids in the run.
#[derive(Clone, Default)]
pub struct RunServers(BTreeMap<ServerId, Arc<dyn McpServers>>);

impl RunServers {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server.
    #[must_use]
    pub fn and(mut self, id: impl Into<ServerId>, servers: Arc<dyn McpServers>) -> Self {
        self.0.insert(id.into(), servers);
        self
    }

    /// Their ids.
    pub fn ids(&self) -> impl Iterator<Item = &ServerId> {
        self.0.keys()
    }
}

impl fmt::Debug for RunServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The injected servers of each run.
#[derive(Default)]
pub(super) struct Injections(Mutex<BTreeMap<RunId, RunServers>>);

impl AgentRunner {
    /// Injects the servers that a run was started with, before this process resumes the run. They are kept until the
    /// run has ended here.
    pub fn inject(&self, run: &RunId, servers: RunServers) {
        self.inner.injections.attach(run, servers);
    }

    /// Removes the servers of a run that has ended.
    pub(super) fn forget_if_over(&self, journal: &Journal) {
        if journal.run().ending().is_some() {
            self.inner.injections.forget(journal.id());
            self.inner.blocked.forget(journal.id());
        }
    }

    /// The servers of this run, including injected ones.
    pub(super) fn servers_of(&self, run: &RunId) -> Arc<dyn McpServers> {
        let base = self.inner.ports.servers.clone();
        match self.inner.injections.servers_of(run) {
            added if added.0.is_empty() => base,
            added => Arc::new(CombinedServers { base, added }),
        }
    }

    /// The ports of a driver of this run.
    pub(super) fn ports_of(&self, run: &RunId) -> Ports {
        Ports { servers: self.servers_of(run), ..self.inner.ports.clone() }
    }
}

impl Injections {
    pub(super) fn attach(&self, run: &RunId, servers: RunServers) {
        if !servers.0.is_empty() {
            self.lock().entry(run.clone()).or_default().0.extend(servers.0);
        }
    }

    pub(super) fn servers_of(&self, run: &RunId) -> RunServers {
        self.lock().get(run).cloned().unwrap_or_default()
    }

    pub(super) fn forget(&self, run: &RunId) {
        self.lock().remove(run);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, RunServers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rejects duplicate names, so that a name refers to one server.
pub(super) fn free_names(configured: &[ServerId], injected: &RunServers) -> Result<(), RunnerError> {
    match injected.ids().find(|id| configured.contains(id)) {
        Some(taken) => Err(RunnerError::ServerTwice(taken.clone())),
        None => Ok(()),
    }
}

/// The configured servers and the injected ones of a run.
struct CombinedServers {
    base: Arc<dyn McpServers>,
    added: RunServers,
}

impl CombinedServers {
    fn with(&self, server: &ServerId) -> &Arc<dyn McpServers> {
        self.added.0.get(server).unwrap_or(&self.base)
    }
}

#[async_trait]
impl McpServers for CombinedServers {
    async fn list(&self, servers: &[ServerId], trace: &SpanContext) -> Vec<ServerTools> {
        let (added, configured): (Vec<_>, Vec<_>) =
            servers.iter().cloned().partition(|server| self.added.0.contains_key(server));
        let lists = added.iter().map(|server| self.with(server).list(std::slice::from_ref(server), trace));
        let (configured, added) = join(self.base.list(&configured, trace), join_all(lists)).await;
        let mut found: BTreeMap<ServerId, ServerTools> = configured
            .into_iter()
            .chain(added.into_iter().flatten())
            .map(|tools| (tools.server.clone(), tools))
            .collect();
        servers.iter().filter_map(|server| found.remove(server)).collect()
    }

    fn generation(&self, servers: &[ServerId]) -> u64 {
        let each = servers.iter().map(|server| self.with(server).generation(std::slice::from_ref(server)));
        // Generations only grow, so their sum changes when any of them does.
        each.fold(0, u64::wrapping_add)
    }

    fn connected_at(&self, server: &ServerId) -> Option<Timestamp> {
        self.with(server).connected_at(server)
    }

    async fn confirm(&self, servers: &[(ServerId, Option<Duration>)], trace: &SpanContext) {
        let each = servers.iter().map(|server| self.with(&server.0).confirm(std::slice::from_ref(server), trace));
        join_all(each).await;
    }

    async fn call(&self, call: McpCall<'_>, progress: &(dyn Fn(Progress) + Send + Sync)) -> DeliveredReply {
        self.with(call.server).call(call, progress).await
    }

    async fn task(&self, task: McpTask<'_>) -> Result<DeliveredReply, String> {
        self.with(task.server).task(task).await
    }

    async fn release(&self, run: &RunId, trace: &SpanContext) {
        self.base.release(run, trace).await;
        join_all(self.added.0.values().map(|servers| servers.release(run, trace))).await;
    }
}
