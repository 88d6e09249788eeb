//! One live connection: how it comes about, what is known of the other side, and its end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::{ClientInitializeError, Peer};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::era::{self, Running};
use super::http;
use super::listener::Listener;
use super::settings::{ServerSettings, StdioSettings, Transport};
use super::signals::Signals;
use super::stdio::{self, Child, LineCap, Output, Overflow, SpawnError};

/// How long the exit status of a child is waited for once its connection broke.
const POST_MORTEM: Duration = Duration::from_millis(500);
/// How long an orderly goodbye may take, before the process is dealt with.
const GOODBYE: Duration = Duration::from_secs(2);

/// A server that has shaken hands.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
    /// What the supervisor hears.
    pub(super) signals: Signals,
    /// The calls that are under way.
    pub(super) calls: TaskTracker,
    /// Where what outlives a request is waited for.
    pub(super) tasks: TaskTracker,
    /// Dropping it ends the connection as well, without waiting.
    goodbye: CancellationToken,
    /// Nothing is exchanged any more.
    over: CancellationToken,
    _when_dropped: DropGuard,
    process: Option<Process>,
}

/// The child behind a stdio connection.
struct Process {
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

impl Connection {
    /// Connects and shakes hands. What a child says besides the protocol is handed out as soon as there is one, so that
    /// whoever gives up waiting can still read it.
    pub(super) async fn open(
        settings: &ServerSettings,
        tasks: &TaskTracker,
        output: &Mutex<Option<Output>>,
    ) -> Result<Self, ConnectError> {
        let signals = Signals::default();
        let listener = Listener::new(signals.clone());
        let (running, process) = match &settings.transport {
            Transport::Stdio(stdio) => {
                let (running, process) = open_stdio(stdio, listener.clone(), tasks, output).await?;
                (running, Some(process))
            }
            Transport::Http(http) => {
                let transport = http::transport(http, settings.max_concurrency)?;
                let running = era::handshake(listener.clone(), transport).await.map_err(refused_over_http)?;
                (running, None)
            }
        };
        let peer = running.peer().clone();
        let (goodbye, over) = (CancellationToken::new(), CancellationToken::new());
        tasks.spawn(see_to_the_end(running, goodbye.clone(), over.clone(), signals.lost.clone()));
        let _when_dropped = goodbye.clone().drop_guard();
        Ok(Self {
            peer,
            listener,
            signals,
            calls: TaskTracker::new(),
            goodbye,
            over,
            _when_dropped,
            process,
            tasks: tasks.clone(),
        })
    }

    /// Waits until it is of no more use. What a child started itself may hold its stdout open when it is gone.
    pub(super) async fn lost(&self) {
        let ended = async {
            match &self.process {
                Some(process) => process.child.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.signals.lost.cancelled() => {}
            () = ended => self.signals.lost.cancel(),
        }
    }

    /// Whether the server promised to say when its tools change, and can be heard. Over HTTP that takes a stream which
    /// many servers do not have, and the stateless revision says so to subscribers only.
    pub(super) fn announces_changes(&self) -> bool {
        self.is_child()
            && self.peer_info().is_some_and(|peer| {
                let promises = peer.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
                promises == Some(true) && peer.protocol_version <= ProtocolVersion::LATEST_WITH_INITIALIZE
            })
    }

    /// What the other side said of itself.
    pub(super) fn peer_info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Whether the other side is a child of ours.
    pub(super) fn is_child(&self) -> bool {
        self.process.is_some()
    }

    /// The process id of a child.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.pid())
    }

    /// Says goodbye and waits until nothing is left.
    pub(super) async fn close(&self) {
        self.goodbye.cancel();
        let _ = timeout(GOODBYE, self.over.cancelled()).await;
        if let Some(process) = &self.process {
            process.child.shut_down().await;
        }
    }

    /// Sweeps away what is left of it once it was lost. Over HTTP calls may still be answered when nobody can be dialled
    /// any more, so that waits for them, in the background.
    pub(super) async fn retire(self: Arc<Self>, closing: CancellationToken) {
        if self.is_child() {
            return self.close().await;
        }
        let tasks = self.tasks.clone();
        tasks.spawn(async move {
            self.calls.close();
            tokio::select! {
                () = self.calls.wait() => {}
                () = closing.cancelled() => {}
            }
            self.close().await;
        });
    }

    /// Why the connection is no more, as far as it can be known.
    pub(super) async fn last_words(&self) -> String {
        match &self.process {
            Some(process) => process.last_words().await,
            None => "the stream ended before the answer".into(),
        }
    }
}

impl ConnectError {
    /// Whether another try may help without anybody changing anything.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Spawn(_) | Self::Http(_) => false,
            Self::Died(_) | Self::Unreachable(_) | Self::Handshake(_) => true,
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
        what + &self.child.output().quoted()
    }
}

/// Waits until nothing is exchanged any more, by our wish or by itself, and says so.
async fn see_to_the_end(
    running: Running,
    goodbye: CancellationToken,
    over: CancellationToken,
    lost: CancellationToken,
) {
    let stop = running.cancellation_token();
    let end = running.waiting();
    tokio::pin!(end);
    tokio::select! {
        _ = &mut end => {}
        () = goodbye.cancelled() => {
            stop.cancel();
            let _ = end.await;
        }
    }
    over.cancel();
    lost.cancel();
}

async fn open_stdio(
    settings: &StdioSettings,
    listener: Listener,
    tasks: &TaskTracker,
    output: &Mutex<Option<Output>>,
) -> Result<(Running, Process), ConnectError> {
    let (child, stdout, stdin) = stdio::spawn(settings, tasks)?;
    *output.lock().unwrap_or_else(PoisonError::into_inner) = Some(child.output().clone());
    let process = Process { child, overflow: Overflow::default() };
    let stdout = LineCap::new(stdout, process.overflow.clone());
    let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(usize::MAX);
    match era::handshake(listener, transport).await {
        Ok(running) => Ok((running, process)),
        Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }) => {
            Err(ConnectError::Died(process.last_words().await))
        }
        Err(other) => Err(ConnectError::Handshake(refusal(&other) + &process.child.output().quoted())),
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
