//! One configured server: connected when first needed, and again whenever the connection was lost.
//!
//! This is the simple form. The supervisor that restarts with backoff and follows `list_changed` replaces
//! [`Server::connection`]; the rest of the room asks for a connection and does not care how it came about.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Connection;
use super::exchange::Limits;
use super::fault::Fault;
use super::settings::ServerSettings;
use super::status::{ServerState, ServerStatus};
use super::stdio::Output;
use super::{call, era, listing, task};
use crate::core::id::ServerId;
use crate::core::tool::{CallReply, FailureKind, LeftOut, Outcome, ServerTools};
use crate::core::trace::SpanContext;
use crate::ports::{McpCall, McpTask, Progress};

/// A server and what is known of it.
pub(super) struct Server {
    id: ServerId,
    settings: ServerSettings,
    slots: Semaphore,
    state: Mutex<State>,
    /// What the newest child says besides the protocol, kept beyond its end.
    output: Mutex<Option<Output>>,
    /// Which era of the protocol it was found to speak.
    eras: era::Memory,
    /// Held while connecting, so that everybody waits for the same attempt.
    gate: Arc<tokio::sync::Mutex<()>>,
    attempts: AtomicU64,
    tasks: TaskTracker,
    closing: CancellationToken,
}

enum State {
    Idle,
    Starting,
    Ready(Arc<Connection>),
    Failed(String),
    Closed,
}

impl Server {
    /// A server that nobody needed yet.
    pub(super) fn new(id: ServerId, settings: ServerSettings) -> Arc<Self> {
        Arc::new(Self {
            id,
            slots: Semaphore::new(settings.max_concurrency.clamp(1, Semaphore::MAX_PERMITS)),
            settings,
            state: Mutex::new(State::Idle),
            output: Mutex::default(),
            eras: era::Memory::default(),
            gate: Arc::default(),
            attempts: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        })
    }

    /// Its tools, or why there are none, within the start budget.
    pub(super) async fn list(self: &Arc<Self>, trace: &SpanContext) -> ServerTools {
        let limits = Limits::new(self.settings.start_timeout, self.settings.start_timeout);
        let listed = match self.connection().await {
            Ok(connection) => {
                let listed = listing::list(&connection, &call::trace_meta(trace), limits).await;
                listed.map_err(|fault| format!("the MCP server `{}` {fault}", self.id))
            }
            Err(reason) => Err(reason),
        };
        let (tools, left_out) = match listed {
            Ok(listing) => (listing.tools, listing.left_out),
            Err(reason) => (Vec::new(), vec![(None, reason)]),
        };
        let left_out = left_out
            .into_iter()
            .map(|(tool, reason)| LeftOut { server: Some(self.id.clone()), tool, reason })
            .collect();
        ServerTools { server: self.id.clone(), trusted: self.settings.trusted, tools, left_out, stale: None }
    }

    /// Makes a call when it is its turn.
    pub(super) async fn call(
        self: &Arc<Self>,
        call: McpCall<'_>,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> CallReply {
        let total = call.deadline.map_or(self.settings.total_timeout, |own| own.min(self.settings.total_timeout));
        let limits = Limits::new(self.settings.call_timeout, total);
        let Ok(slot) = timeout_at(limits.deadline, self.slots.acquire()).await else {
            return self.never_sent(total, "was busy with other calls").into();
        };
        let connection = match timeout_at(limits.deadline, self.connection()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(reason)) => return Outcome::failed(FailureKind::Unavailable, reason).into(),
            Err(_) => return self.never_sent(total, "was still starting").into(),
        };
        let made = call::make(&connection, &call, limits, progress).await;
        drop(slot);
        made
    }

    /// Asks about a task. The error says why it could not be asked now.
    pub(super) async fn task(self: &Arc<Self>, task: &McpTask<'_>) -> Result<CallReply, String> {
        let limits = Limits::new(self.settings.call_timeout, self.settings.call_timeout);
        let connection = self.connection().await?;
        let asked = task::ask(&connection, task, call::trace_meta(task.trace), limits).await;
        asked.map_err(|fault| format!("the MCP server `{}` {fault}", self.id))
    }

    /// What can be said of it now.
    pub(super) fn status(&self) -> ServerStatus {
        let (state, connection, last_error) = match &*self.state() {
            State::Idle => (ServerState::Idle, None, None),
            State::Starting => (ServerState::Starting, None, None),
            State::Ready(connection) if connection.is_alive() => (ServerState::Ready, Some(connection.clone()), None),
            State::Ready(connection) => {
                let lost = "the connection was lost; the next request connects again";
                (ServerState::Disconnected, Some(connection.clone()), Some(lost.to_owned()))
            }
            State::Failed(reason) => (ServerState::Failed, None, Some(reason.clone())),
            State::Closed => (ServerState::Closed, None, None),
        };
        let peer = connection.as_ref().and_then(|connection| connection.peer_info());
        let itself = peer.as_ref().and_then(|peer| peer.server_info.as_ref());
        ServerStatus {
            id: self.id.clone(),
            state,
            name: itself.map(|itself| itself.name.clone()),
            version: itself.map(|itself| itself.version.clone()),
            protocol_version: peer.as_ref().map(|peer| peer.protocol_version.to_string()),
            last_error,
            stderr: self.output().map(|output| output.stderr().lines()).unwrap_or_default(),
            stdout_noise: self.output().map(|output| output.stdout_noise()).unwrap_or_default(),
            pid: connection.as_ref().and_then(|connection| connection.pid()),
        }
    }

    /// Ends an attempt that is under way, and refuses all later ones.
    pub(super) fn abandon(&self) {
        self.closing.cancel();
    }

    /// Shuts it down for good and waits until nothing is left of it.
    pub(super) async fn close(&self) {
        self.abandon();
        let _gate = self.gate.lock().await;
        let last = std::mem::replace(&mut *self.state(), State::Closed);
        if let State::Ready(connection) = last {
            connection.close().await;
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The live connection, made if need be. An attempt belongs to the server, not to whoever asked first: it goes on
    /// when the run that wanted it is gone, and a slow start is not begun twice.
    async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        if let Some(ready) = self.ready() {
            return Ok(ready);
        }
        let before = self.attempts.load(Ordering::Acquire);
        let gate = self.gate.clone().lock_owned().await;
        if let Some(ready) = self.ready() {
            return Ok(ready);
        }
        if self.closing.is_cancelled() {
            return Err(format!("the MCP server `{}` was shut down, because toolgate is ending", self.id));
        }
        if let (true, State::Failed(reason)) = (self.attempts.load(Ordering::Acquire) != before, &*self.state()) {
            return Err(reason.clone());
        }
        let server = self.clone();
        let attempt = self.tasks.spawn(async move {
            let outcome = server.attempt().await;
            drop(gate);
            outcome
        });
        attempt.await.unwrap_or_else(|_| Err(format!("connecting to the MCP server `{}` panicked", self.id)))
    }

    async fn attempt(&self) -> Result<Arc<Connection>, String> {
        let lost = std::mem::replace(&mut *self.state(), State::Starting);
        drop(lost);
        let budget = self.settings.start_timeout;
        let opened = tokio::select! {
            opened = timeout(budget, Connection::open(&self.settings, &self.tasks, &self.output, &self.eras)) => opened,
            () = self.closing.cancelled() => {
                return Err(format!("the MCP server `{}` was shut down while it was starting", self.id));
            }
        };
        let (state, outcome) = match opened {
            Ok(Ok(connection)) => {
                let connection = Arc::new(connection);
                (State::Ready(connection.clone()), Ok(connection))
            }
            Ok(Err(error)) => self.failed(format!("the MCP server `{}` {error}", self.id)),
            Err(_) => self.failed(self.too_slow(budget)),
        };
        *self.state() = state;
        self.attempts.fetch_add(1, Ordering::Release);
        outcome
    }

    fn failed(&self, reason: String) -> (State, Result<Arc<Connection>, String>) {
        tracing::warn!(server = %self.id, %reason, "MCP server is not available");
        (State::Failed(reason.clone()), Err(reason))
    }

    fn too_slow(&self, budget: Duration) -> String {
        let output = self.output().map(|output| output.quoted()).unwrap_or_default();
        format!(
            "the MCP server `{}` did not answer the handshake within {} s; is it still installing? Install it \
             beforehand, or raise its `start_timeout_s`{output}",
            self.id,
            budget.as_secs_f64()
        )
    }

    fn never_sent(&self, total: Duration, why: &str) -> Outcome {
        let fault = Fault::NotSent(format!("{why} for {} s; the call was not made", total.as_secs_f64()));
        match fault.into_outcome(self.id.as_str()) {
            Outcome::Failed(failure) => Outcome::failed(FailureKind::Timeout, failure.message),
            other @ (Outcome::Returned(_) | Outcome::Unknown) => other,
        }
    }

    fn ready(&self) -> Option<Arc<Connection>> {
        match &*self.state() {
            State::Ready(connection) if connection.is_alive() => Some(connection.clone()),
            State::Ready(_) | State::Idle | State::Starting | State::Failed(_) | State::Closed => None,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self) -> Option<Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
