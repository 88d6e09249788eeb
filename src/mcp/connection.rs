//! One live connection: how it comes about, what is known of the other side, and its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::ServerPeerInfo;
use rmcp::service::{ClientCacheConfig, Peer, serve_directly};
use rmcp::transport::Transport as SdkTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::era::{self, Agreed, Broken, Disagreement, Era, Failed, Memory, Running, Terms, agree};
use super::headers::ToolHeaders;
use super::http;
use super::listener::Listener;
use super::listing::Listing;
use super::settings::{ServerSettings, StdioSettings, Transport};
use super::stdio::{self, Child, LineCap, Mark, Messages, Output, Overflow, SpawnError};
use super::subscription;
use super::task::Told;

/// How long the exit status of a child is waited for once its connection broke.
const POST_MORTEM: Duration = Duration::from_millis(500);
/// How long an orderly goodbye may take, before the process is dealt with.
const GOODBYE: Duration = Duration::from_secs(2);

/// A server that has shaken hands.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
    /// Where what outlives a request is waited for.
    pub(super) tasks: TaskTracker,
    /// What was answered to its tasks.
    pub(super) told: Told,
    era: Era,
    tool_headers: ToolHeaders,
    /// Whether a new agreement is due, so that this connection has no future.
    outdated: AtomicBool,
    running: Mutex<Option<Running>>,
    process: Option<Process>,
    _followers: DropGuard,
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
        memory: &Memory,
    ) -> Result<Self, ConnectError> {
        let (terms, tool_headers) = (Terms::of(settings, memory), ToolHeaders::default());
        match &settings.transport {
            Transport::Stdio(stdio) => {
                let open = || spawn(stdio, tasks, output);
                let (agreed, transport, process) = match agree(&terms, open).await {
                    Ok(established) => (established.agreed, established.transport, established.keeper),
                    Err(Failed::NoTransport(error)) => return Err(error.into()),
                    Err(Failed::Disagreed(why, process)) => return Err(process.refused(why).await),
                };
                Ok(Self::begin(agreed, transport, settings, tasks, tool_headers, Some(process)).await)
            }
            Transport::Http(http) => {
                let open = || Ok((http::transport(http, settings.max_concurrency, tool_headers.clone())?, ()));
                let (agreed, transport) = match agree(&terms, open).await {
                    Ok(established) => (established.agreed, established.transport),
                    Err(Failed::NoTransport(error)) => return Err(ConnectError::Http(error)),
                    Err(Failed::Disagreed(why, ())) => return Err(refused_over_http(why)),
                };
                Ok(Self::begin(agreed, transport, settings, tasks, tool_headers, None).await)
            }
        }
    }

    /// Hands an agreed transport to the SDK.
    async fn begin<T: SdkTransport<RoleClient> + 'static>(
        agreed: Agreed,
        transport: T,
        settings: &ServerSettings,
        tasks: &TaskTracker,
        tool_headers: ToolHeaders,
        process: Option<Process>,
    ) -> Self {
        let Agreed { era, peer: itself } = agreed;
        let follows = era == Era::Modern
            && itself.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true));
        let listener = Listener::new(era::introduction(era, settings.elicitation));
        let running = serve_directly(listener.clone(), transport, Some(itself));
        let peer = running.peer().clone();
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        let over = CancellationToken::new();
        if follows {
            let following = subscription::follow(peer.clone(), listener.tools_changed().clone());
            tasks.spawn(over.clone().run_until_cancelled_owned(following));
        }
        Self {
            peer,
            listener,
            tasks: tasks.clone(),
            told: Told::default(),
            era,
            tool_headers,
            outdated: AtomicBool::new(false),
            running: Mutex::new(Some(running)),
            process,
            _followers: over.drop_guard(),
        }
    }

    /// Whether a request has a chance.
    pub(super) fn is_alive(&self) -> bool {
        !self.outdated.load(Ordering::Acquire)
            && !self.peer.is_transport_closed()
            && self.process.as_ref().is_none_or(|process| !process.child.has_exited())
    }

    /// What the other side said of itself.
    pub(super) fn peer_info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// The era it speaks. The revision is in [`peer_info`](Self::peer_info).
    pub(super) fn era(&self) -> Era {
        self.era
    }

    /// The server no longer holds to what was agreed: the next request needs a new connection.
    pub(super) fn outdate(&self) {
        self.outdated.store(true, Ordering::Release);
    }

    /// Counts how often the server said that its tools changed.
    pub(super) fn tools_changed(&self) -> watch::Receiver<u64> {
        self.listener.tools_changed().subscribe()
    }

    /// Heeds what listed tools want of a call, and leaves out those that can never be called. Over stdio there are no
    /// headers, so that nothing can be wrong with them.
    pub(super) fn take_up(&self, listing: &mut Listing) {
        if self.era == Era::Modern && self.process.is_none() {
            self.tool_headers.take_up(&mut listing.tools, &mut listing.left_out);
        }
    }

    /// Where a child is now in what it writes to stderr.
    pub(super) fn mark(&self) -> Option<Mark> {
        self.process.as_ref().map(|process| process.child.output().mark())
    }

    /// What it wrote to stderr since then, as far as it is kept.
    pub(super) fn said_since(&self, mark: Option<Mark>) -> Vec<String> {
        let said = self.process.as_ref().zip(mark).map(|(process, mark)| process.child.output().stderr_since(mark));
        said.unwrap_or_default()
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
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut running) = running {
            let _ = running.close_with_timeout(GOODBYE).await;
        }
        if let Some(process) = &self.process {
            process.child.shut_down().await;
        }
    }

    /// Why the connection is no more, as far as it can be known.
    pub(super) async fn last_words(&self) -> String {
        match &self.process {
            Some(process) => process.last_words().await,
            None => "the stream ended before the answer".into(),
        }
    }
}

impl Process {
    async fn refused(&self, why: Disagreement) -> ConnectError {
        match why {
            Disagreement::Refused(words) => ConnectError::Handshake(words + &self.child.output().quoted()),
            Disagreement::Broken(_) => ConnectError::Died(self.last_words().await),
        }
    }

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

type StdioTransport = AsyncRwTransport<RoleClient, LineCap<Messages<ChildStdout>>, ChildStdin>;

/// A fresh child.
fn spawn(
    settings: &StdioSettings,
    tasks: &TaskTracker,
    output: &Mutex<Option<Output>>,
) -> Result<(StdioTransport, Process), SpawnError> {
    let (child, stdout, stdin) = stdio::spawn(settings, tasks)?;
    *output.lock().unwrap_or_else(PoisonError::into_inner) = Some(child.output().clone());
    let process = Process { child, overflow: Overflow::default() };
    let stdout = LineCap::new(stdout, process.overflow.clone());
    Ok((AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(usize::MAX), process))
}

fn refused_over_http(why: Disagreement) -> ConnectError {
    match why {
        Disagreement::Refused(words) => ConnectError::Handshake(words),
        Disagreement::Broken(Broken::Unsendable(error)) => ConnectError::Unreachable(http::explain(&error)),
        Disagreement::Broken(Broken::Ended) => {
            ConnectError::Unreachable("the stream ended before the answer to the handshake".into())
        }
    }
}
