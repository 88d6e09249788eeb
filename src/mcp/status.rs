//! What can be said about a server from outside, for the command line and for telemetry.

use serde::Serialize;

use crate::core::id::ServerId;

/// A server as it is now. Nothing is asked of it for this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    /// The configured id.
    pub id: ServerId,
    /// How it stands.
    pub state: ServerState,
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version it says it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The protocol revision agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Why it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The last lines it wrote to stderr.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// What it wrote to stdout that is no message.
    #[serde(skip_serializing_if = "StdoutNoise::is_none")]
    pub stdout_noise: StdoutNoise,
    /// Its process, for a server that was started by toolgate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// The states of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Not needed yet.
    Idle,
    /// Being started or dialled.
    Starting,
    /// Connected.
    Ready,
    /// Was connected, and is not any more; the next request starts it anew.
    Disconnected,
    /// Did not start; the next request tries again.
    Failed,
    /// Shut down for good.
    Closed,
}

/// What a server wrote to stdout that is no message of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StdoutNoise {
    /// How many lines.
    pub lines: u64,
    /// The first few, cut and without the secrets it was given.
    pub first: Vec<String>,
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
