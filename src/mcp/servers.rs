//! All configured servers, as the port that the driver calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use jiff::Timestamp;
use rmcp::ServerHandler;
use toolgate_core::id::{RunId, ServerId};
use toolgate_core::tool::{DeliveredReply, FailureKind, LeftOut, Outcome, Progress, ServerTools};
use toolgate_core::trace::SpanContext;
use toolgate_ports::{McpCall, McpServers, McpTask};

use super::in_process::InProcess;
use super::server::Server;
use super::settings::{ServerSettings, Transport};
use super::status::ServerStatus;
use super::supervisor::StartLimiter;
use super::watch::Watcher;

/// The configured servers. Call [`close`](Self::close) before the runtime ends, so that no process is orphaned.
pub struct Servers {
    servers: BTreeMap<ServerId, Arc<Server>>,
    starts: StartLimiter,
}

impl Servers {
    /// Creates the servers without starting or dialling them.
    pub fn new(settings: impl IntoIterator<Item = (ServerId, ServerSettings)>) -> Self {
        let starts = StartLimiter::new();
        let server =
            |(id, settings): (ServerId, ServerSettings)| (id.clone(), Arc::new(Server::new(id, settings, &starts)));
        let servers = settings.into_iter().map(server).collect();
        Self { servers, starts }
    }

    /// An in-process server, for example one that is attached to a single run (`Request::inject`). The types are those
    /// of the `rmcp` that this crate re-exports.
    pub fn in_process<H: ServerHandler>(
        id: impl Into<ServerId>,
        make: impl Fn() -> H + Send + Sync + 'static,
    ) -> Arc<Self> {
        let settings = ServerSettings::new(Transport::InProcess(InProcess::new(make)));
        Arc::new(Self::new([(id.into(), settings)]))
    }

    /// Another set of servers. A server without settings is shared with this set as it is. Both sets may be used; a
    /// server ends when no set contains it.
    #[must_use]
    pub fn reconfigured(
        &self,
        wanted: impl IntoIterator<Item = (ServerId, Option<ServerSettings>)>,
        watcher: Option<&Watcher>,
    ) -> Self {
        let server = |(id, settings): (ServerId, Option<ServerSettings>)| {
            let server = match settings {
                None => self.servers.get(&id)?.clone(),
                Some(settings) => {
                    let server = Server::new(id.clone(), settings, &self.starts);
                    watcher.into_iter().for_each(|watcher| server.watched_by(watcher.clone()));
                    Arc::new(server)
                }
            };
            Some((id, server))
        };
        Self { servers: wanted.into_iter().filter_map(server).collect(), starts: self.starts.clone() }
    }

    /// Starts all servers at once, except those that start lazily, and waits for none of them. Without this call each
    /// server starts when it is needed.
    pub fn start(&self) {
        self.servers.values().for_each(|server| server.start());
    }

    /// Ends the wait of runs for servers that are not ready yet: a run continues without their tools, and its next turn has
    /// those that are ready by then.
    pub fn skip_waits(&self) {
        self.servers.values().for_each(|server| server.skip_wait());
    }

    /// Reports the finished exchanges of all servers to `watcher` from now on.
    pub fn watched_by(self, watcher: &Watcher) -> Self {
        self.servers.values().for_each(|server| server.watched_by(watcher.clone()));
        self
    }

    /// The status of every server, in the order of their ids.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.servers.values().map(|server| server.status()).collect()
    }

    /// The status of one server; `None` if the id is unknown.
    pub fn status_of(&self, id: &ServerId) -> Option<ServerStatus> {
        self.servers.get(id).map(|server| server.status())
    }

    /// Lists the tools of a server again. The error states why that failed; `None` if the id is unknown.
    pub async fn refresh(&self, id: &ServerId) -> Option<Result<(), String>> {
        Some(self.servers.get(id)?.refresh().await)
    }

    /// Ends the connection to a server, or its process, with the calls in flight, opens another one, and lists its
    /// tools. The error states why the server is unavailable; `None` if the id is unknown.
    pub async fn restart(&self, id: &ServerId) -> Option<Result<(), String>> {
        Some(self.servers.get(id)?.restart().await)
    }

    /// Shuts all servers down concurrently, and returns when all their processes have ended. Calls in flight end as
    /// disconnected; later requests are rejected.
    pub async fn close(&self) {
        join_all(self.servers.values().map(|server| server.close())).await;
    }

    fn unknown(id: &ServerId) -> String {
        format!("there is no MCP server `{id}` in the configuration; add it, or correct the name")
    }
}

#[async_trait]
impl McpServers for Servers {
    async fn list(&self, servers: &[ServerId], trace: &SpanContext) -> Vec<ServerTools> {
        let lists = servers.iter().map(|id| async move {
            match self.servers.get(id) {
                Some(server) => server.list(trace).await,
                None => {
                    let left_out = LeftOut { server: Some(id.clone()), tool: None, reason: Self::unknown(id) };
                    ServerTools {
                        server: id.clone(),
                        trusted: false,
                        endpoint: None,
                        tools: Arc::default(),
                        left_out: vec![left_out],
                        stale: None,
                        authorization: None,
                    }
                }
            }
        });
        join_all(lists).await
    }

    /// The sum of all generations: each of them only grows.
    fn generation(&self, servers: &[ServerId]) -> u64 {
        servers.iter().filter_map(|id| self.servers.get(id)).map(|server| server.generation()).sum()
    }

    fn connected_at(&self, server: &ServerId) -> Option<Timestamp> {
        self.servers.get(server)?.connected_at()
    }

    async fn confirm(&self, servers: &[(ServerId, Option<Duration>)], trace: &SpanContext) {
        let confirmed =
            servers.iter().filter_map(|(id, approved)| Some(self.servers.get(id)?.confirm(*approved, trace)));
        join_all(confirmed).await;
    }

    async fn call(&self, call: McpCall<'_>, progress: &(dyn Fn(Progress) + Send + Sync)) -> DeliveredReply {
        match self.servers.get(call.server) {
            Some(server) => server.call(call, progress).await,
            None => Outcome::failed(FailureKind::Unavailable, Self::unknown(call.server)).into(),
        }
    }

    async fn task(&self, task: McpTask<'_>) -> Result<DeliveredReply, String> {
        match self.servers.get(task.server) {
            Some(server) => server.task(&task).await,
            None => Ok(Outcome::failed(FailureKind::Unavailable, Self::unknown(task.server)).into()),
        }
    }

    /// All runs share the connections, so a run has nothing to release.
    async fn release(&self, _run: &RunId, _trace: &SpanContext) {}
}
