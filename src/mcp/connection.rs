//! A live MCP connection: how it is opened, what is known of the server, and how it ends.

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::ServerPeerInfo;
use rmcp::service::{ClientCacheConfig, Peer, serve_directly};
use rmcp::transport::Transport as SdkTransport;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use toolgate_core::tool::McpTool;

use super::answered_elicitations::AnsweredTaskElicitations;
use super::auth::AuthorizationRecord;
use super::client_handler::McpClientHandler;
use super::closable::Closable;
use super::headers::ToolHeaders;
use super::http;
use super::negotiation::{
    self, Era, Failed, HandshakeFailure, NegotiationError, NegotiationParams, NegotiationResult, Running, negotiate,
};
use super::settings::{ServerSettings, StdioSettings, Transport};
use super::signals::Signals;
use super::stdio::{self, Child, Output, SpawnError};
use super::subscription;
use super::task_only::TaskOnly;
use super::traffic::Traffic;
use super::transport::{Disconnection, LineTransport, Requests, StreamObservers};

/// How long to wait for the exit status of a child process after its connection broke.
const EXIT_STATUS_TIMEOUT: Duration = Duration::from_millis(500);
/// The time limit of an orderly shutdown, before the process is ended.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection with a completed handshake.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) client_handler: McpClientHandler,
    /// The signals to the supervisor.
    pub(super) signals: Signals,
    /// The calls in flight.
    pub(super) calls: TaskTracker,
    /// The tracker of tasks that outlive a request.
    pub(super) tasks: TaskTracker,
    /// The requests in flight, as the transport tracks them.
    pub(super) requests: Requests,
    /// The answers already sent to its tasks.
    pub(super) answered_elicitations: AnsweredTaskElicitations,
    era: Era,
    /// Whether it was announced to the server that it may ask in the middle of a call.
    may_ask: bool,
    /// The upper limit of tools that are used from its list.
    pub(super) max_tools: usize,
    tool_headers: ToolHeaders,
    task_only: TaskOnly,
    traffic: Traffic,
    /// Dropping it ends the connection as well, without waiting.
    goodbye: CancellationToken,
    /// Cancelled when the exchange of messages has ended.
    pub(super) over: CancellationToken,
    _when_dropped: DropGuard,
    process: Option<Process>,
    over_http: bool,
    /// Whether the last response had no answer.
    pub(super) was_unanswered: AtomicBool,
    /// Why it became unusable, if a request found out.
    why_lost: OnceLock<String>,
}

/// The child process behind a stdio connection.
struct Process {
    child: Child,
    cut: Disconnection,
}

/// Why a connection could not be opened. Messages complete the sentence "the MCP server `x` ...".
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("could not be started: {0}")]
    Spawn(#[from] SpawnError),
    #[error("{0}")]
    Unavailable(String),
    #[error("could not be reached: {0}")]
    Http(#[from] http::SettingsError),
    #[error("ended before it was ready: {0}")]
    Died(String),
    #[error("could not be reached: {0}")]
    Unreachable(String),
    #[error("could not be reached: {0}")]
    NoAccess(String),
    #[error("broke off the connection in the handshake: {0}")]
    BrokeOff(String),
    #[error("{0}")]
    Unconfirmed(String),
    #[error("answered the handshake with {0}")]
    NoMcp(String),
    #[error("refused the handshake: {0}")]
    Handshake(String),
}

impl Connection {
    /// Connects and performs the handshake. Publishes the output of a child process as soon as it exists, so that a
    /// caller that gives up waiting can still read it.
    pub(super) async fn open(
        settings: &ServerSettings,
        terms: NegotiationParams<'_>,
        tasks: &TaskTracker,
        output: &Mutex<Option<Output>>,
        authorization: &AuthorizationRecord,
    ) -> Result<Self, ConnectError> {
        let (tool_headers, task_only, traffic) = (ToolHeaders::default(), TaskOnly::default(), Traffic::default());
        match &settings.transport {
            Transport::Stdio(stdio) => {
                let established = match negotiate(&terms, || spawn(stdio, tasks, output, (&task_only, &traffic))).await
                {
                    Ok(established) => established,
                    Err(Failed::NoTransport(error)) => return Err(error.into()),
                    Err(Failed::Disagreed(why, (process, _))) => return Err(process.refused(why, stdio).await),
                };
                let (process, requests) = established.keeper;
                let begun = Self::begin(established.agreed, established.transport, requests, settings, tasks);
                Ok(Self {
                    process: Some(process),
                    task_only: task_only.clone(),
                    traffic: traffic.clone(),
                    ..begun.await
                })
            }
            Transport::Http(http) => {
                let max = settings.max_concurrency;
                let open = || {
                    let requests = Requests::default();
                    let (tools, task_only, traffic) = (tool_headers.clone(), task_only.clone(), traffic.clone());
                    let seen = http::Seen::with(tools, task_only, requests.clone(), traffic, authorization.clone());
                    Ok((http::transport(http, max, seen)?, requests))
                };
                let established = match negotiate(&terms, open).await {
                    Ok(established) => established,
                    Err(Failed::NoTransport(error)) => return Err(ConnectError::Http(error)),
                    Err(Failed::Disagreed(why, _)) => return Err(refused_over_http(why, &http.url)),
                };
                let begun = Self::begin(established.agreed, established.transport, established.keeper, settings, tasks);
                Ok(Self {
                    over_http: true,
                    tool_headers: tool_headers.clone(),
                    task_only: task_only.clone(),
                    traffic: traffic.clone(),
                    ..begun.await
                })
            }
            Transport::Unavailable(reason) => Err(ConnectError::Unavailable(reason.clone())),
            Transport::InProcess(host) => {
                let open = || {
                    let (pipe, serving) = host.open();
                    tasks.spawn(serving);
                    let (reading, writing) = tokio::io::split(pipe);
                    let requests = Requests::default();
                    let transport = LineTransport::new(
                        reading,
                        writing,
                        requests.clone(),
                        Disconnection::default(),
                        StreamObservers::default(),
                    );
                    Ok::<_, Infallible>((transport, requests))
                };
                let established = match negotiate(&terms, open).await {
                    Ok(established) => established,
                    Err(Failed::NoTransport(never)) => match never {},
                    Err(Failed::Disagreed(why, _)) => return Err(refused_in_process(why)),
                };
                let (agreed, transport) = (established.agreed, established.transport);
                Ok(Self::begin(agreed, transport, established.keeper, settings, tasks).await)
            }
        }
    }

    /// Hands a negotiated transport to the SDK.
    pub(super) async fn begin<T: SdkTransport<RoleClient> + 'static>(
        agreed: NegotiationResult,
        transport: T,
        requests: Requests,
        settings: &ServerSettings,
        tasks: &TaskTracker,
    ) -> Self {
        let NegotiationResult { era, peer: itself } = agreed;
        let signals = Signals::default();
        let (goodbye, over) = (CancellationToken::new(), CancellationToken::new());
        let client_handler = McpClientHandler::new(
            negotiation::introduction(era, settings.elicitation),
            signals.clone(),
            goodbye.clone(),
        );
        let transport = Closable::new(transport, goodbye.clone());
        let running = serve_directly(client_handler.clone(), transport, Some(itself));
        let peer = running.peer().clone();
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        tasks.spawn(wait_for_end(running, goodbye.clone(), over.clone(), signals.lost.clone()));
        let connection = Self {
            peer,
            client_handler,
            signals,
            calls: TaskTracker::new(),
            tasks: tasks.clone(),
            requests,
            answered_elicitations: AnsweredTaskElicitations::default(),
            era,
            may_ask: settings.elicitation,
            max_tools: settings.max_tools,
            tool_headers: ToolHeaders::default(),
            task_only: TaskOnly::default(),
            traffic: Traffic::default(),
            _when_dropped: goodbye.clone().drop_guard(),
            goodbye,
            over,
            process: None,
            over_http: false,
            was_unanswered: AtomicBool::default(),
            why_lost: OnceLock::new(),
        };
        if era == Era::Modern && connection.promises_changes() {
            let following = subscription::follow(connection.peer.clone(), connection.signals.clone());
            tasks.spawn(connection.signals.lost.clone().run_until_cancelled_owned(following));
        }
        connection
    }

    /// Waits until it is unusable. The end of stdout ends a connection, not the end of the process: a launcher may
    /// leave the server behind, which then continues to use the pipes. A process that failed leaves nothing of use.
    pub(super) async fn lost(&self) {
        let ended = async {
            match &self.process {
                Some(process) => process.child.failed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.signals.lost.cancelled() => {}
            () = ended => self.signals.lost.cancel(),
        }
    }

    /// Marks the connection unusable, as a request found out; the reason completes "lost its connection: ...".
    /// Requests in flight continue.
    pub(super) fn give_up(&self, why: String) {
        let _ = self.why_lost.set(why);
        self.signals.lost.cancel();
    }

    /// Whether the server promised to announce changes of its tools, and can do so. Over HTTP that takes a stream
    /// which many servers do not have, and the stateless revision announces changes to subscribers only.
    pub(super) fn announces_changes(&self) -> bool {
        !self.over_http && self.era == Era::Legacy && self.promises_changes()
    }

    fn promises_changes(&self) -> bool {
        self.peer_info()
            .is_some_and(|peer| peer.capabilities.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true))
    }

    /// Whether the server declared that it has tools.
    pub(super) fn has_tools_capability(&self) -> bool {
        self.peer_info().is_some_and(|peer| peer.capabilities.tools.is_some())
    }

    /// The negotiated era. [`peer_info`](Self::peer_info) has the revision.
    pub(super) fn era(&self) -> Era {
        self.era
    }

    /// Whether it was announced to the server that it may ask in the middle of a call.
    pub(super) fn may_ask(&self) -> bool {
        self.may_ask
    }

    /// Records the headers that listed tools require, and leaves out tools that can never be called. Over stdio there
    /// are no headers, so no tool is left out because of them.
    pub(super) fn register_tools(&self, tools: &mut Vec<McpTool>, left_out: &mut Vec<(Option<String>, String)>) {
        match (self.era, self.over_http) {
            (Era::Modern, true) => self.tool_headers.register_tools(tools, left_out),
            (Era::Modern, false) => {}
            (Era::Legacy, _) => self.task_only.leave_out(tools, left_out),
        }
    }

    /// The server's description of itself.
    pub(super) fn peer_info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// The negotiated revision of the protocol.
    pub(super) fn protocol_version(&self) -> Option<String> {
        self.peer_info().map(|peer| peer.protocol_version.to_string())
    }

    /// Whether the server was dialled over HTTP.
    pub(super) fn is_over_http(&self) -> bool {
        self.over_http
    }

    /// The process id of a child process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.pid())
    }

    /// Whether its process has exited. Processes that it left behind may still use its pipes.
    pub(super) fn has_exited(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.child.has_exited())
    }

    /// The last lines of its process on stderr.
    pub(super) async fn stderr(&self) -> Vec<String> {
        match &self.process {
            Some(process) => process.child.output().stderr_so_far().await,
            None => Vec::new(),
        }
    }

    /// The end of a message about the server: the output of its process besides the protocol.
    pub(super) fn process_output(&self) -> String {
        self.process.as_ref().map(|process| process.child.output().quoted()).unwrap_or_default()
    }

    /// The server's traffic besides its answers.
    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Shuts the connection down and waits until its resources are released. Whatever the server sends, that takes no
    /// longer than [`SHUTDOWN_TIMEOUT`] and the end of a process.
    pub(super) async fn close(&self) {
        self.goodbye.cancel();
        self.over.cancelled().await;
        if let Some(process) = &self.process {
            process.child.shut_down().await;
        }
    }

    /// Cleans up after a loss. Over HTTP, calls may still get an answer when new connections are impossible, so the
    /// cleanup waits for them in the background.
    pub(super) async fn retire(self: Arc<Self>, closing: CancellationToken) {
        if !self.over_http {
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

    /// The reason for the loss, as far as it can be determined.
    pub(super) async fn exit_report(&self) -> String {
        match (self.why_lost.get(), &self.process) {
            (Some(why), _) => why.clone(),
            (None, Some(process)) => process.exit_report().await,
            (None, None) => "the stream ended before the answer".into(),
        }
    }
}

impl ConnectError {
    /// Whether a retry may succeed without a change by the operator.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Spawn(_) | Self::Unavailable(_) | Self::Http(_) | Self::NoAccess(_) => false,
            Self::Died(_) | Self::Unreachable(_) | Self::BrokeOff(_) | Self::NoMcp(_) | Self::Handshake(_) => true,
            Self::Unconfirmed(_) => true,
        }
    }
}

impl Process {
    async fn refused(&self, why: NegotiationError, settings: &StdioSettings) -> ConnectError {
        match why {
            NegotiationError::Refused(words) | NegotiationError::NotLegacy(words) => {
                ConnectError::Handshake(words + &self.child.output().quoted())
            }
            NegotiationError::Broken(_) | NegotiationError::Unconfirmed(_) => {
                ConnectError::Died(self.exit_report().await + &stdio::kept_back(settings))
            }
        }
    }

    async fn exit_report(&self) -> String {
        if let Some(reason) = self.cut.reason() {
            return reason.to_owned();
        }
        let what = match self.child.exit_within(EXIT_STATUS_TIMEOUT).await {
            Some(status) => format!("its process ended with {status}"),
            None => "it closed its stdout".into(),
        };
        what + &self.child.output().quoted()
    }
}

/// Waits until the exchange of messages has ended, by our request or not, and cancels `over`. A server that is still
/// sending after [`SHUTDOWN_TIMEOUT`] is abandoned.
async fn wait_for_end(running: Running, goodbye: CancellationToken, over: CancellationToken, lost: CancellationToken) {
    let _over = over.drop_guard();
    let stop = running.cancellation_token();
    let end = running.waiting();
    tokio::pin!(end);
    tokio::select! {
        _ = &mut end => {}
        () = goodbye.cancelled() => {
            stop.cancel();
            let _ = timeout(SHUTDOWN_TIMEOUT, end).await;
        }
    }
    lost.cancel();
}

type StdioTransport = LineTransport<ChildStdout, ChildStdin>;

/// Starts a new child process.
fn spawn(
    settings: &StdioSettings,
    tasks: &TaskTracker,
    output: &Mutex<Option<Output>>,
    (task_only, traffic): (&TaskOnly, &Traffic),
) -> Result<(StdioTransport, (Process, Requests)), SpawnError> {
    let (child, stdout, stdin) = stdio::spawn(settings, tasks)?;
    *output.lock().unwrap_or_else(PoisonError::into_inner) = Some(child.output().clone());
    let (cut, requests) = (Disconnection::default(), Requests::default());
    let (task_only, traffic, noise) = (task_only.clone(), traffic.clone(), || child.output().noise().clone());
    let (stranger, cut_off, secrets) = (noise(), noise(), noise());
    let taps = StreamObservers {
        on_message: Box::new(move |text| {
            task_only.look_at(text);
            traffic.record(text);
        }),
        on_noise: Box::new(move |text| stranger.note(text)),
        on_cut_off: Box::new(move |text| cut_off.note_cut_off(text)),
        redact: Box::new(move |text| secrets.redacted(text)),
    };
    let transport = LineTransport::new(stdout, stdin, requests.clone(), cut.clone(), taps);
    Ok((transport, (Process { child, cut }, requests)))
}

fn refused_in_process(why: NegotiationError) -> ConnectError {
    match why {
        NegotiationError::Refused(words) | NegotiationError::NotLegacy(words) => ConnectError::Handshake(words),
        NegotiationError::Broken(_) | NegotiationError::Unconfirmed(_) => ConnectError::BrokeOff("it ended".into()),
    }
}

fn refused_over_http(why: NegotiationError, url: &str) -> ConnectError {
    match why {
        NegotiationError::Refused(words) | NegotiationError::NotLegacy(words) => ConnectError::Handshake(words),
        NegotiationError::Broken(HandshakeFailure::Unsendable(error))
        | NegotiationError::Unconfirmed(HandshakeFailure::Unsendable(error))
            if http::is_locked(&error) =>
        {
            ConnectError::NoAccess(http::explain(&error))
        }
        NegotiationError::Unconfirmed(HandshakeFailure::Unsendable(error)) => {
            ConnectError::Unconfirmed(negotiation::unconfirmed(&error))
        }
        NegotiationError::Broken(HandshakeFailure::Unsendable(error)) => match http::answered_without_mcp(&error) {
            Some(answer) => ConnectError::NoMcp(answer),
            None if http::is_broken_off(&error) => {
                ConnectError::BrokeOff(http::explain(&error) + remedy_for_plain(url))
            }
            None => ConnectError::Unreachable(http::explain(&error)),
        },
        NegotiationError::Broken(HandshakeFailure::Ended) | NegotiationError::Unconfirmed(HandshakeFailure::Ended) => {
            ConnectError::NoMcp("no message at all; is it an MCP server, and is its `url` right?".into())
        }
    }
}

/// A port that expects TLS closes a connection that speaks plain HTTP.
fn remedy_for_plain(url: &str) -> &'static str {
    if url.starts_with("http://") {
        "; does it expect TLS, so that its `url` has to begin with `https://`?"
    } else {
        ""
    }
}
