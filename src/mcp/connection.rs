//! One live connection: the handshake, one exchange at a time, cancellation, and the end.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, JsonObject, MetaObject, RequestId,
    RequestMetaObject, ServerPeerInfo, ServerResult,
};
use rmcp::service::{ClientInitializeError, Peer, PeerRequestOptions, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::era::{self, Running};
use super::fault::Fault;
use super::http;
use super::listener::Listener;
use super::settings::{ServerSettings, StdioSettings, Transport};
use super::stdio::{self, Child, LineCap, Overflow, SpawnError, StderrTail};
use crate::ports::Progress;

/// How long the exit status of a child is waited for once its connection broke.
const POST_MORTEM: Duration = Duration::from_millis(500);
/// How long an orderly goodbye may take, before the process is dealt with.
const GOODBYE: Duration = Duration::from_secs(2);
/// How much of stderr is quoted in a message.
const QUOTED_LINES: usize = 12;

/// A server that has shaken hands.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    running: Mutex<Option<Running>>,
    listener: Listener,
    process: Option<Process>,
    tasks: TaskTracker,
}

/// The child behind a stdio connection.
pub(super) struct Process {
    child: Child,
    overflow: Overflow,
}

/// Why there is no connection. Messages complete the sentence "the MCP server `x` ...".
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("could not be started: {0}")]
    Spawn(#[from] SpawnError),
    #[error("could not be reached: {0}")]
    Http(#[from] http::SettingsError),
    #[error("ended before it was ready: {0}")]
    Died(String),
    #[error("could not be reached: {0}")]
    Unreachable(String),
    #[error("refused the handshake: {0}")]
    Handshake(String),
}

/// The time an exchange has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The longest silence; progress ends it.
    pub(super) silence: Duration,
    /// The longest time in all, for the message.
    pub(super) total: Duration,
    /// When that is over.
    pub(super) deadline: Instant,
}

impl Limits {
    /// Limits that begin now.
    pub(super) fn new(silence: Duration, total: Duration) -> Self {
        let (longest, now) = (Duration::from_secs(365 * 24 * 3600), Instant::now());
        Self { silence: silence.min(longest), total, deadline: now + total.min(longest) }
    }
}

impl Connection {
    /// Connects and shakes hands. The `stderr` of a child is handed out as soon as there is one, so that whoever gives
    /// up waiting can still read it.
    pub(super) async fn open(
        settings: &ServerSettings,
        tasks: &TaskTracker,
        stderr: &Mutex<Option<StderrTail>>,
    ) -> Result<Self, ConnectError> {
        let listener = Listener::default();
        let (running, process) = match &settings.transport {
            Transport::Stdio(stdio) => {
                let (running, process) = open_stdio(stdio, listener.clone(), tasks, stderr).await?;
                (running, Some(process))
            }
            Transport::Http(http) => {
                let transport = http::transport(http, settings.max_concurrency)?;
                let running = era::handshake(listener.clone(), transport).await.map_err(refused_over_http)?;
                (running, None)
            }
        };
        let peer = running.peer().clone();
        Ok(Self { peer, running: Mutex::new(Some(running)), listener, process, tasks: tasks.clone() })
    }

    /// Whether a request has a chance.
    pub(super) fn is_alive(&self) -> bool {
        !self.peer.is_transport_closed() && self.process.as_ref().is_none_or(|process| !process.child.has_exited())
    }

    /// What the other side said of itself.
    pub(super) fn peer_info(&self) -> Option<std::sync::Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// The process id of a child.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.pid())
    }

    /// Sends a request and waits for its result, unparsed. When the wait ends early, by a limit or because the future
    /// was dropped, the server is told that nobody wants the result any more.
    pub(super) async fn exchange(
        &self,
        request: ClientRequest,
        meta: JsonObject,
        limits: Limits,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Value, Fault> {
        let options = PeerRequestOptions::no_options().with_meta(RequestMetaObject(MetaObject::from(meta)));
        let mut routes = self.listener.hold().await;
        let Ok(mut handle) = self.peer.send_cancellable_request(request, options).await else {
            drop(routes);
            return Err(Fault::NotSent(format!("is gone: {}", self.last_words().await)));
        };
        let mut updates = routes.register(handle.progress_token.clone());
        drop(routes);
        let mut in_flight = InFlight { connection: self, request: Some(handle.id.clone()) };

        let mut told = Told { furthest: f64::NEG_INFINITY, progress };
        let silence = tokio::time::sleep(limits.silence);
        tokio::pin!(silence);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer,
                Some(update) = updates.recv() => {
                    told.tell(update);
                    silence.as_mut().reset(Instant::now() + limits.silence);
                }
                () = tokio::time::sleep_until(limits.deadline) => return Err(Fault::Late(limits.total)),
                () = &mut silence => return Err(Fault::Silent(limits.silence)),
            }
        };
        in_flight.request = None;
        while let Ok(update) = updates.try_recv() {
            told.tell(update);
        }
        match answer {
            Ok(Ok(result)) => raw(result),
            Ok(Err(error)) => Err(self.fault(error).await),
            Err(_) => Err(Fault::Disconnected(self.last_words().await)),
        }
    }

    /// Says goodbye and waits until nothing is left.
    pub(super) async fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut running) = running {
            let _ = running.close_with_timeout(GOODBYE).await;
        }
        if let Some(process) = &self.process {
            process.child.shut_down().await;
        }
    }

    async fn fault(&self, error: ServiceError) -> Fault {
        if let ServiceError::McpError(error) = error {
            return Fault::Refused { code: error.code.0, message: error.message.into_owned() };
        }
        if let (ServiceError::TransportSend(error), None) = (&error, &self.process) {
            return http::send_fault(error);
        }
        Fault::Disconnected(self.last_words().await)
    }

    /// Why the connection is no more, as far as it can be known.
    async fn last_words(&self) -> String {
        match &self.process {
            Some(process) => process.last_words().await,
            None => "the stream ended before the answer".into(),
        }
    }
}

impl Process {
    async fn last_words(&self) -> String {
        if self.overflow.happened() {
            let longest = Overflow::MAX_LINE / (1024 * 1024);
            return format!("it sent a message longer than {longest} MiB; let the tool return less, or in pieces");
        }
        let what = match self.child.exit_within(POST_MORTEM).await {
            Some(status) => format!("its process ended with {status}"),
            None => "it closed its stdout".into(),
        };
        what + &quoted(self.child.stderr())
    }
}

/// The end of stderr, as it is quoted in messages.
pub(super) fn quoted(stderr: &StderrTail) -> String {
    let lines = stderr.lines();
    let mut quote = String::new();
    for line in lines.iter().skip(lines.len().saturating_sub(QUOTED_LINES)) {
        let _ = write!(quote, "\n  {line}");
    }
    match quote.is_empty() {
        true => "; it wrote nothing to stderr".into(),
        false => format!("; last on its stderr:{quote}"),
    }
}

async fn open_stdio(
    settings: &StdioSettings,
    listener: Listener,
    tasks: &TaskTracker,
    stderr: &Mutex<Option<StderrTail>>,
) -> Result<(Running, Process), ConnectError> {
    let (child, stdout, stdin) = stdio::spawn(settings, tasks)?;
    *stderr.lock().unwrap_or_else(PoisonError::into_inner) = Some(child.stderr().clone());
    let process = Process { child, overflow: Overflow::default() };
    let stdout = LineCap::new(stdout, process.overflow.clone());
    let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(usize::MAX);
    match era::handshake(listener, transport).await {
        Ok(running) => Ok((running, process)),
        Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }) => {
            Err(ConnectError::Died(process.last_words().await))
        }
        Err(other) => Err(ConnectError::Handshake(refusal(&other) + &quoted(process.child.stderr()))),
    }
}

fn refused_over_http(error: ClientInitializeError) -> ConnectError {
    if let ClientInitializeError::TransportError { error, .. } = &error {
        return ConnectError::Unreachable(http::explain(error));
    }
    ConnectError::Handshake(refusal(&error))
}

/// What is wrong with an answer to the handshake. The SDK's own words hold the whole answer.
fn refusal(error: &ClientInitializeError) -> String {
    const LONGEST: usize = 300;
    if let ClientInitializeError::JsonRpcError(error) = error {
        return format!("{} (JSON-RPC error {})", error.message, error.code.0);
    }
    error.to_string().chars().take(LONGEST).collect()
}

/// The result as JSON. The SDK guesses its type; whatever it took it for, the JSON is what the server sent.
fn raw(result: ServerResult) -> Result<Value, Fault> {
    if let ServerResult::CustomResult(untyped) = result {
        return Ok(untyped.0);
    }
    serde_json::to_value(result).map_err(|error| Fault::Unreadable(error.to_string()))
}

/// What a caller was told so far. Reports can overtake one another on their way here; one that is behind is dropped.
struct Told<'a> {
    furthest: f64,
    progress: &'a (dyn Fn(Progress) + Send + Sync),
}

impl Told<'_> {
    fn tell(&mut self, update: Progress) {
        if update.progress >= self.furthest {
            self.furthest = update.progress;
            (self.progress)(update);
        }
    }
}

/// A request that is under way. Dropping it tells the server to stop.
struct InFlight<'a> {
    connection: &'a Connection,
    request: Option<RequestId>,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let (Some(request), Ok(runtime)) = (self.request.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let params = CancelledNotificationParam::new(Some(request), Some("nobody waits for the result".into()));
        let peer = self.connection.peer.clone();
        let cancel = async move {
            let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        };
        self.connection.tasks.spawn_on(cancel, &runtime);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_the_sdk_takes_a_result_for_the_json_is_what_the_server_sent() {
        for sent in [
            json!({}),
            json!({"tools": [{"name": "bare"}]}),
            json!({"tools": [{"name": "t", "inputSchema": {"z": 1, "a": true}, "outputSchema": {"type": "array"}}]}),
            json!({"content": [{"type": "hologram"}], "isError": true}),
            json!({"resultType": "complete", "content": [{"type": "hologram"}]}),
            json!({"resultType": "input_required", "requestState": "s"}),
            json!({"content": [{"type": "text", "text": "t"}], "structuredContent": [1, 2.5, null]}),
            json!({"content": [], "structuredContent": null}),
        ] {
            let read: ServerResult = serde_json::from_value(sent.clone()).expect("any object is a result");
            assert_eq!(raw(read).map(|json| json.to_string()), Ok(sent.to_string()));
        }
    }
}
