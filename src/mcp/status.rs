//! Status of a server, for the command line and for telemetry.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::time::Instant;
use toolgate_core::id::ServerId;

use super::call_counters::CallStats;
use super::dialer::Dialer;
use super::stdio::{Output, StdoutNoise};
use super::supervisor::{State, Supervisor};

/// The current status of a server. Reading it sends nothing to the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerStatus {
    pub id: ServerId,
    #[serde(flatten)]
    pub state: ServerState,
    /// When it entered this state.
    pub since: Timestamp,
    /// The name that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The negotiated protocol revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The process id, for a server that toolgate started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The number of tools in its last list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Why these tools are stale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// How often it was restarted or dialled again.
    pub restarts: u64,
    /// The most recent error, kept after a recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// Its call statistics.
    pub calls: CallStats,
    /// The last lines it wrote to stderr.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// Lines on its stdout that are not messages.
    #[serde(skip_serializing_if = "StdoutNoise::is_none")]
    pub stdout_noise: StdoutNoise,
}

/// The states of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// Not needed yet, or not recently.
    Idle,
    /// Being started or dialled.
    Starting,
    /// Connected, but its tools are not known yet. The list is retried automatically.
    Listing,
    /// Connected, and its tools are known.
    Ready,
    /// Away; retried automatically.
    BackingOff {
        /// Consecutive failures.
        failures: u32,
        /// The time of the next retry.
        next_attempt: Timestamp,
    },
    /// Away; retried when a request needs it.
    Failed {
        /// Consecutive failures.
        failures: u32,
    },
    /// Shut down for good.
    Closed,
}

/// An error with its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastError {
    /// The error, as a sentence.
    pub message: String,
    /// When it happened.
    pub at: Timestamp,
}

impl ServerStatus {
    pub(super) fn new(id: &ServerId, supervisor: &Supervisor<Dialer>, said: Option<Output>, calls: CallStats) -> Self {
        let connection = supervisor.connection_state();
        let (tools, stale) = supervisor.tools();
        let failures = connection.failures;
        let state = match &connection.state {
            State::Idle => ServerState::Idle,
            State::Starting => ServerState::Starting,
            State::Ready(_) if tools.is_none() => ServerState::Listing,
            State::Ready(_) => ServerState::Ready,
            State::BackingOff { until } => ServerState::BackingOff { failures, next_attempt: timestamp(*until) },
            State::Failed { .. } => ServerState::Failed { failures },
            State::Closed => ServerState::Closed,
        };
        let link = connection.link();
        let peer = link.as_ref().and_then(|link| link.peer_info());
        let itself = peer.as_ref().and_then(|peer| peer.server_info.as_ref());
        let last_error = connection
            .last_error
            .as_ref()
            .map(|error| LastError { message: format!("the MCP server `{id}` {}", error.reason), at: error.at });
        let unlisted = supervisor.list_failure().map(|(message, at)| LastError { message, at });
        let last_error = [last_error, unlisted].into_iter().flatten().max_by_key(|error| error.at);
        Self {
            id: id.clone(),
            state,
            since: connection.since,
            name: itself.map(|itself| itself.name.clone()),
            version: itself.map(|itself| itself.version.clone()),
            protocol_version: peer.as_ref().map(|peer| peer.protocol_version.to_string()),
            pid: link.as_ref().and_then(|link| link.pid()),
            tools,
            stale,
            restarts: connection.starts.saturating_sub(1),
            last_error,
            calls,
            stderr: said.as_ref().map(|said| said.stderr().lines()).unwrap_or_default(),
            stdout_noise: said.map(|said| said.stdout_noise()).unwrap_or_default(),
        }
    }
}

/// Converts a moment of the monotonic clock to wall-clock time.
fn timestamp(moment: Instant) -> Timestamp {
    let left = moment.saturating_duration_since(Instant::now());
    let left = SignedDuration::try_from(left).unwrap_or(SignedDuration::ZERO);
    Timestamp::now().checked_add(left).unwrap_or(Timestamp::MAX)
}
