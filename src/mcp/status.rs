//! What can be said about a server from outside, for the command line and for telemetry.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::time::Instant;

use super::line::Line;
use super::stdio::Output;
use super::supervisor::{State, Supervisor};
use super::tally::CallStats;
use crate::core::id::ServerId;

/// A server as it is now. Nothing is asked of it for this.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerStatus {
    /// The configured id.
    pub id: ServerId,
    /// How it stands.
    #[serde(flatten)]
    pub state: ServerState,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version it says it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The protocol revision agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Its process, for a server that was started by toolgate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How many tools it listed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Why these are the tools of before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// How often it was started or dialled again.
    pub restarts: u64,
    /// What went wrong last, also if it is well by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// How its calls went.
    pub calls: CallStats,
    /// The last lines it wrote to stderr.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// What it wrote to stdout that is no message.
    #[serde(skip_serializing_if = "StdoutNoise::is_none")]
    pub stdout_noise: StdoutNoise,
}

/// The states of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// Not needed yet, or not for a while.
    Idle,
    /// Being started or dialled.
    Starting,
    /// Connected, and its tools are not known yet: it has not listed them. It is asked again by itself.
    Listing,
    /// Connected, and its tools are known.
    Ready,
    /// Away; tried again by itself.
    BackingOff {
        /// How often it failed in a row.
        failures: u32,
        /// When it is tried again.
        next_attempt: Timestamp,
    },
    /// Away; tried again when it is needed.
    Failed {
        /// How often it failed in a row.
        failures: u32,
    },
    /// Shut down for good.
    Closed,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastError {
    /// What, in a sentence.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

/// What a server wrote to stdout that is no message of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StdoutNoise {
    /// How many lines.
    pub lines: u64,
    /// The first few, cut and without the secrets it was given.
    pub first: Vec<String>,
}

impl ServerStatus {
    pub(super) fn of(id: &ServerId, supervisor: &Supervisor<Line>, said: Option<Output>, calls: CallStats) -> Self {
        let standing = supervisor.standing();
        let (tools, stale) = supervisor.tools();
        let failures = standing.failures;
        let state = match &standing.state {
            State::Idle => ServerState::Idle,
            State::Starting => ServerState::Starting,
            State::Ready(_) if tools.is_none() => ServerState::Listing,
            State::Ready(_) => ServerState::Ready,
            State::BackingOff { until } => ServerState::BackingOff { failures, next_attempt: timestamp(*until) },
            State::Failed { .. } => ServerState::Failed { failures },
            State::Closed => ServerState::Closed,
        };
        let link = standing.link();
        let peer = link.as_ref().and_then(|link| link.peer_info());
        let itself = peer.as_ref().and_then(|peer| peer.server_info.as_ref());
        let last_error = standing
            .last_error
            .as_ref()
            .map(|trouble| LastError { message: format!("the MCP server `{id}` {}", trouble.reason), at: trouble.at });
        let unlisted = supervisor.list_trouble().map(|(message, at)| LastError { message, at });
        let last_error = [last_error, unlisted].into_iter().flatten().max_by_key(|error| error.at);
        Self {
            id: id.clone(),
            state,
            since: standing.since,
            name: itself.map(|itself| itself.name.clone()),
            version: itself.map(|itself| itself.version.clone()),
            protocol_version: peer.as_ref().map(|peer| peer.protocol_version.to_string()),
            pid: link.as_ref().and_then(|link| link.pid()),
            tools,
            stale,
            restarts: standing.starts.saturating_sub(1),
            last_error,
            calls,
            stderr: said.as_ref().map(|said| said.stderr().lines()).unwrap_or_default(),
            stdout_noise: said.map(|said| said.stdout_noise()).unwrap_or_default(),
        }
    }
}

/// A moment of the clock that timers use, as people tell time.
fn timestamp(moment: Instant) -> Timestamp {
    let left = moment.saturating_duration_since(Instant::now());
    let left = SignedDuration::try_from(left).unwrap_or(SignedDuration::ZERO);
    Timestamp::now().checked_add(left).unwrap_or(Timestamp::MAX)
}

impl StdoutNoise {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.lines == 0
    }

    /// What is wrong with it, if there is any.
    pub fn told(&self) -> Option<String> {
        let first = self.first.first()?;
        let lines = self.lines;
        Some(format!("it writes log lines to stdout ({lines} so far, the first: `{first}`); they belong on stderr"))
    }
}
